"""`python -m gateway`: reads its environment and serves until it receives a signal."""

import asyncio
import logging
import os
import sys

from gateway import logs
from gateway.server import Gateway
from gateway.settings import Settings, SettingsError

NOT_SET_UP = 2
"""Exit code if the environment is not valid."""


def main() -> int:
    """Runs the gateway; returns the exit code."""
    try:
        settings = Settings.of(os.environ)
        settings.upstream_tls()
        settings.listen_tls()
    except (SettingsError, OSError) as error:  # OSError: also a certificate that is not valid
        sys.stderr.write(f"redis-gateway: {error}\n")
        return NOT_SET_UP
    logs.begin(settings.log_level)
    try:
        asyncio.run(Gateway(settings).run())
    except OSError as error:
        logging.getLogger("gateway").critical("cannot serve: %s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
