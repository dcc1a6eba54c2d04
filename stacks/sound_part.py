"""The part of a stack file that has no fault of its own, so that faults between its parts can be said as well."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core.problems import Path
from core.stack_file import PREFIX

TENANTS = f"{PREFIX}tenants"


@dataclass(frozen=True)
class SoundPart:
    """Values without the tenants and clusters that have a fault."""

    values: dict[str, Any]
    tenants: list[int]
    """Of each tenant its index in the file."""
    clusters: list[list[int]]
    """Of each tenant's clusters their indexes in the file."""

    def original(self, path: Path) -> Path:
        """A path in the part as it is in the file."""
        match path:
            case (key, int(tenant), "clusters", int(cluster), *rest):
                return (key, self.tenants[tenant], "clusters", self.clusters[tenant][cluster], *rest)
            case (key, int(tenant), *rest):
                return (key, self.tenants[tenant], *rest) if key == TENANTS else path
        return path


def sound_part(values: Mapping[str, Any], faults: Iterable[Path]) -> SoundPart | None:
    """The values without faulty tenants and clusters; None where a fault is elsewhere, on which the others depend."""
    faulty: set[Path] = set()
    for path in faults:
        match path:
            case (key, int(tenant), "clusters", int(cluster), *_) if key == TENANTS:
                faulty.add((tenant, cluster))
            case (key, int(tenant), *_) if key == TENANTS:
                faulty.add((tenant,))
            case _:
                return None
    kept, tenants, clusters = [], [], []
    for index, tenant in enumerate(values["tenants"]):
        if (index,) not in faulty:
            sound = [at for at in range(len(tenant.get("clusters", ()))) if (index, at) not in faulty]
            whole = len(sound) == len(tenant.get("clusters", ()))
            # Users name clusters: one that is left out here is there all the same.
            rest = tenant if whole else {key: value for key, value in tenant.items() if key != "users"}
            kept.append({**rest, "clusters": [tenant["clusters"][at] for at in sound]})
            tenants.append(index)
            clusters.append(sound)
    return SoundPart({**values, "tenants": kept}, tenants, clusters)
