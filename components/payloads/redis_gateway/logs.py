"""Log lines as JSON objects. They never contain arguments of commands or passwords: no caller passes these."""

import json
import logging
import sys
import time


class JsonLines(logging.Formatter):
    """One object per line: time (UTC), level, part of the gateway, message."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{stamp}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "part": record.name.rpartition(".")[2],
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def begin(level: str) -> None:
    """Writes log lines of this level and above to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
