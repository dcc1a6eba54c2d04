"""Prints the packages of an environment; runs with the environment's own interpreter, without the SDK.

Prints one JSON list, with an object per distribution: `name`, `version`, `requires` (names of its dependencies) and
`plugin`, the content of the pulumi-plugin.json in its package, or null. A package with that file is an SDK of a Pulumi
plugin.
"""

import importlib.metadata
import importlib.util
import json
import pathlib
import re


def normal(name: str) -> str:
    """A distribution's name as PEP 503 writes it."""
    return re.sub("[-_.]+", "-", name).lower()


def plugin_file(module: str) -> "dict[str, object] | None":
    """The pulumi-plugin.json beside a module's code, or None; finds the module without importing it."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    for folder in (spec and spec.submodule_search_locations) or []:
        path = pathlib.Path(folder, "pulumi-plugin.json")
        if path.is_file():
            content: dict[str, object] = json.loads(path.read_text())
            return content
    return None


def main() -> None:
    found = {}
    for distribution in importlib.metadata.distributions():
        metadata = distribution.metadata  # reads and parses the file at each access
        name = metadata["Name"]
        if not name or name in found:
            continue
        needs = [need for need in metadata.get_all("Requires-Dist", []) if "extra ==" not in need]
        found[name] = {
            "name": normal(name),
            "version": metadata["Version"],
            "requires": [normal(re.split(r"[^\w.-]", need, maxsplit=1)[0]) for need in needs],
            "plugin": plugin_file(name.replace("-", "_")),
        }
    print(json.dumps(list(found.values())))


if __name__ == "__main__":
    main()
