"""Files that are replaced as a whole."""

import shutil
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
