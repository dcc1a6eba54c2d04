"""Files that this program keeps between runs, in the user's cache folder. Losing them costs time and nothing else."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def cache_folders(kind: str) -> list[Path]:
    """Where files of a kind may lie, in order: below RAY_PLATFORM_CACHE or else the user's cache folder; and in a
    temporary folder of this user, for containers whose home cannot be written to."""
    cache = os.environ.get("RAY_PLATFORM_CACHE")
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    temporary = Path(tempfile.gettempdir()) / f"ray-platform-{os.getuid()}"
    return [(Path(cache) if cache else user / "ray-platform") / kind, temporary / kind]


def keep_file(folder: Path, name: str, text: str) -> bool:
    """Writes a file of a cache folder whole or not at all. Returns whether that was possible."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
            file.write(text)
        Path(file.name).replace(folder / name)
        return True
    return False
