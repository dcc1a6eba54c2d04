"""The other packages of the wheel, whose names are common words: another folder of that name must not replace one."""

from importlib.util import find_spec
from pathlib import Path

PARTS = ("core", "kuberay", "policies", "components", "stacks")

_HERE = Path(__file__).parents[1]


def _refuse_others() -> None:
    """Raises ImportError if Python would import one of the parts from another place than beside this package."""
    others = {part: folder for part in PARTS if (folder := _folder(part)) != _HERE}
    if others:
        places = ", ".join(f"{part} from {folder or 'nowhere'}" for part, folder in others.items())
        raise ImportError(
            f"ray-platform has its own packages {', '.join(PARTS)} in {_HERE}, and Python would import {places}: "
            "rename your folder or module of that name, or move it into a package of yours"
        )


def _folder(part: str) -> Path | None:
    spec = find_spec(part)
    places = list(spec.submodule_search_locations or ()) if spec else []
    if places:
        return Path(places[0]).parent
    return Path(spec.origin).parent if spec and spec.origin else None


_refuse_others()
