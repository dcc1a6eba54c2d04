"""Files that this program keeps between runs, in the user's cache folder. Their loss costs only time."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def cache_folders(kind: str) -> list[Path]:
    """The folders for files of a kind, in order: below RAY_PLATFORM_CACHE or else the user's cache folder; then a
    temporary folder of this user, for containers with a read-only home."""
    cache = os.environ.get("RAY_PLATFORM_CACHE")
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    temporary = Path(tempfile.gettempdir()) / f"ray-platform-{os.getuid()}"
    return [(Path(cache) if cache else user / "ray-platform") / kind, temporary / kind]


def keep_file(folder: Path, name: str, text: str) -> bool:
    """Writes a file of a cache folder atomically. Returns whether that was possible."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
            file.write(text)
        Path(file.name).replace(folder / name)
        return True
    return False
