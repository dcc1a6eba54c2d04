"""Manifests as files in a folder: the same bytes for the same stack file."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from core.body import Body
from core.yaml_writer import FileDumper
from stacks.commands.render.stages import DEFINITIONS, STAGES, WAVE, Rendered, shown_names

_MARK = "<!-- Written by `ray-platform render`, which replaces this folder's files. -->"
"""First line of the README, by which a folder is known as one that may be written again."""

_README = "README.md"

_KUSTOMIZATION = "kustomization.yaml"

_OURS = frozenset({_README, _KUSTOMIZATION, "argocd.yaml", "flux.yaml", *STAGES})


_BETWEEN = "--"
"""Between namespace, kind and name in the name of a file."""


class OccupiedError(Exception):
    """The folder has other files; the text has its name."""


def write(rendered: Rendered, stack: str, folder: Path, path: str) -> int:
    """Writes the files. Returns the number of objects.

    `path`: of the folder in its repository, for Flux and Argo CD. Raises OccupiedError if the folder has other files,
    and OSError.
    """
    files = dict(_files(rendered, stack, path))
    _clear(folder)
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return sum(map(len, rendered.stages.values()))


def _clear(folder: Path) -> None:
    found = list(folder.iterdir()) if folder.is_dir() else []
    readme = folder / _README
    written = readme.is_file() and readme.read_bytes().startswith(_MARK.encode())
    # Everything is known before anything is deleted.
    others = [other for each in found for other in _others(each)] if written else found
    if others:
        other = others[0].relative_to(folder)
        raise OccupiedError(
            f"{folder} has other files, such as {other}: name a new folder, or one that has only what `render` writes"
        )
    # What shows whose files they are goes last: the command can be run again after one that was killed or had no right.
    for each in sorted(found, key=lambda each: each.name == _README):
        if each.is_dir():
            for file in sorted(each.iterdir(), key=lambda file: file.name == _KUSTOMIZATION):
                file.unlink()
            each.rmdir()
        else:
            each.unlink()


def _others(path: Path) -> Iterator[Path]:
    """What `render` has not written: the path, or files in the folder of a stage."""
    if path.name not in _OURS or path.is_dir() != (path.name in STAGES):
        yield path
    elif path.is_dir():
        listed = _loaded(path / _KUSTOMIZATION).get("resources")
        listed = listed if isinstance(listed, list) else []
        for each in sorted(path.iterdir()):
            if each.is_dir() or (each.name != _KUSTOMIZATION and not (each.name in listed and _is_ours(each))):
                yield each


def _is_ours(file: Path) -> bool:
    """Whether a file of a stage has an object with the annotation of all that `render` writes, or the start of one
    whose writing was stopped: the annotations are before the name."""
    metadata = _loaded(file).get("metadata")
    found = metadata if isinstance(metadata, Mapping) else {}
    return _BETWEEN in file.name and ("name" not in found or WAVE in (found.get("annotations") or ()))


def _loaded(file: Path) -> Mapping[str, Any]:
    """The mapping in a file of YAML; empty if there is none."""
    try:
        value = yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        value = None
    return value if isinstance(value, Mapping) else {}


def _files(rendered: Rendered, stack: str, path: str) -> Iterator[tuple[str, str]]:
    yield _README, _readme(rendered, stack)
    yield _KUSTOMIZATION, dump(_kustomization(list(rendered.stages)))
    yield "argocd.yaml", dump(_application(stack, path))
    yield "flux.yaml", "---\n".join(dump(each) for each in _flux(list(rendered.stages), stack, path))
    for stage, bodies in rendered.stages.items():
        named = _named(bodies)
        yield f"{stage}/{_KUSTOMIZATION}", dump(_kustomization(sorted(named)))
        for name, body in named.items():
            yield f"{stage}/{name}", dump(body)


def _named(bodies: Sequence[Body]) -> dict[str, Body]:
    """The objects by the names of their files. Names may differ in what a file's name has not: case, colons."""
    often = Counter(map(_file_name, bodies))
    return {name if often[name := _file_name(body)] == 1 else _unique(name, body): body for body in bodies}


def _unique(name: str, body: Body) -> str:
    metadata = body["metadata"]
    whole = json.dumps([body["apiVersion"], body["kind"], metadata.get("namespace"), metadata["name"]])
    return f"{name.removesuffix('.yaml')}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}.yaml"


def _file_name(body: Body) -> str:
    metadata = body["metadata"]
    parts = [metadata.get("namespace", ""), body["kind"].lower(), metadata["name"]]
    return re.sub(r"[^a-z0-9.-]+", "-", "_".join(filter(None, parts)).lower().replace("_", _BETWEEN)) + ".yaml"


def dump(body: Mapping[str, Any]) -> str:
    """An object as YAML, with sorted keys."""
    return str(yaml.dump(dict(body), Dumper=FileDumper, sort_keys=True, allow_unicode=True, width=100))


def _kustomization(resources: list[str]) -> Body:
    return {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources}


def _application(stack: str, path: str) -> Body:
    """An Application of Argo CD (argoproj.github.io, Sync Options; Diff Strategies; Diffing Customization).

    Without ServerSideDiff each RayCluster always differs: Argo CD does not know the defaults of its definition.
    """
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": _object_name(stack),
            "namespace": "argocd",
            "annotations": {"argocd.argoproj.io/compare-options": "ServerSideDiff=true"},
        },
        "spec": {
            "project": "default",
            "source": {"repoURL": "REPOSITORY", "targetRevision": "HEAD", "path": path},
            "destination": {"server": "https://kubernetes.default.svc"},
            "syncPolicy": {"syncOptions": ["ServerSideApply=true", "RespectIgnoreDifferences=true"]},
            "ignoreDifferences": [
                {
                    "group": "ray.io",
                    "kind": "RayCluster",
                    "jqPathExpressions": [
                        ".spec.workerGroupSpecs[]?.replicas",
                        ".spec.workerGroupSpecs[]?.scaleStrategy",
                    ],
                }
            ],
        },
    }


def _flux(stages: list[str], stack: str, path: str) -> Iterator[Body]:
    """A Kustomization of Flux for each stage (fluxcd.io, kustomize.toolkit.fluxcd.io/v1)."""
    for before, stage in zip([None, *stages], stages, strict=False):
        spec: Body = {
            "interval": "10m",
            "path": f"./{path}/{stage}",
            # Nothing deletes the definitions, and with them all objects of their kinds.
            "prune": stage != DEFINITIONS,
            "sourceRef": {"kind": "GitRepository", "name": "flux-system"},
            "wait": True,
        }
        if before:
            spec["dependsOn"] = [{"name": _flux_name(stack, before)}]
        metadata = {"name": _flux_name(stack, stage), "namespace": "flux-system"}
        yield {
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
            "kind": "Kustomization",
            "metadata": metadata,
            "spec": spec,
        }


def _flux_name(stack: str, stage: str) -> str:
    return f"{_object_name(stack)}-{stage}"


def _object_name(stack: str) -> str:
    """A name that Kubernetes accepts: a stack's may have capitals and underscores."""
    return f"ray-platform-{re.sub(r'[^a-z0-9.-]+', '-', stack.lower()).strip('.-')}"


def _readme(rendered: Rendered, stack: str) -> str:
    stages = [f"| `{name}` | {len(bodies)} |" for name, bodies in rendered.stages.items()]
    secrets = [f"| {each.namespace} | `{each.name}` | {shown_names(each.users)} |" for each in rendered.secrets]
    left = [f"- **{each.what}**: {each.why}." for each in rendered.left]
    parts = [
        _MARK,
        f"\n# Stack {stack} as plain manifests\n",
        "| Stage | Objects |",
        "| --- | --- |",
        *stages,
        "\nApply a stage after the one before it is ready:\n",
        *(f"    kubectl apply --server-side -k {name}" for name in rendered.stages),
        "\n## Not in here\n",
        *left,
    ]
    if secrets:
        parts += [
            "\n## Secrets\n",
            "Objects refer to these by name; no value is in here. Create them before stage 50-platform, for "
            "example by External Secrets; KubeRay or cert-manager may create some.\n",
            "| Namespace | Secret | Used by |",
            "| --- | --- | --- |",
            *secrets,
        ]
    return "\n".join(parts) + "\n"
