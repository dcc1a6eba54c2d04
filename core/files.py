"""Files that are replaced as a whole, and those that this program keeps between runs, in the user's cache folder. The
loss of the latter costs only time."""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path


def replace_text(file: Path, text: str) -> None:
    """Replaces the text of a file, which may not exist yet, or leaves the file as it is: a full disk must not cut it.

    A link stays a link, the file keeps its mode, and a device or a pipe gets the text. Raises OSError.
    """
    real = file.resolve()
    if file.exists() and not file.is_file():
        file.write_text(text, encoding="utf-8", newline="")
        return
    fresh = real.with_name(f"{real.name}.new")
    try:
        fresh.write_text(text, encoding="utf-8", newline="")
        if real.exists():
            shutil.copymode(real, fresh)
        fresh.replace(real)
    finally:
        fresh.unlink(missing_ok=True)


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
