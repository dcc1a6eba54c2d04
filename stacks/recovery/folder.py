"""A backend that is a folder, after Pulumi was killed while it wrote there."""

from pathlib import Path
from urllib.parse import urlsplit

_FOLDERS = ("stacks", "locks")


def mend(url: str) -> bool:
    """Removes attributes of states and locks that a killed Pulumi left empty. Returns whether there were any.

    Beside each file are its attributes, which are emptied before they are written (gocloud.dev/blob/fileblob/attrs.go:
    setAttrs). A file whose attributes are empty cannot be read (`EOF`), one that has none can. `url`: of any backend;
    of one that is no folder nothing is removed.
    """
    where = urlsplit(url)
    if where.scheme != "file":
        return False
    bookkeeping = Path(where.netloc + where.path).expanduser() / ".pulumi"
    empty = [file for part in _FOLDERS for file in (bookkeeping / part).rglob("*.attrs") if file.stat().st_size == 0]
    for file in empty:
        file.unlink(missing_ok=True)
    return bool(empty)
