"""`python -m redis_gateway`: reads its environment and serves until it receives a signal."""

import asyncio
import logging
import os
import sys

from . import logs
from .server import Gateway
from .settings import Settings, SettingsError

NOT_SET_UP = 2
"""Exit code if the environment is not valid."""


def main() -> int:
    """Runs the gateway; returns the exit code."""
    try:
        settings = Settings.of(os.environ)
        settings.upstream_tls()
    except (SettingsError, OSError) as error:  # OSError: also a certificate that is not valid
        sys.stderr.write(f"redis-gateway: {error}\n")
        return NOT_SET_UP
    logs.begin(settings.log_level)
    try:
        asyncio.run(_serve(settings))
    except OSError as error:
        logging.getLogger(__package__).critical("cannot serve: %s", error)
        return 1
    return 0


async def _serve(settings: Settings) -> None:
    # Within the loop: before Python 3.10, what waits belongs to the loop in which it is made.
    await Gateway(settings).run()


if __name__ == "__main__":
    sys.exit(main())
