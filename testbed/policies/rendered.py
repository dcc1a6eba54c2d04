"""The stacks of this project as manifests: the resources that their program registers, without engine and cluster."""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pulumi
import yaml

from components.operator.upgrade import Live
from core.stack_file import PREFIX
from local import paths, tools
from policies.decode import judged_object
from policies.values import UNKNOWN, Object, Secret
from stacks.load import parse
from stacks.program.build import build
from stacks.program.facts import Facts
from testbed.recorder import Recorder

_SECRET = "c2VjcmV0"  # noqa: S105 -- stands for all of them, in base64 as Secrets require it


class Decoding(Recorder):
    """Records resources as the engine would pass them to a policy pack."""

    def __init__(self) -> None:
        super().__init__()
        self.objects: list[Object] = []

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 (the protocol's name)
        found = judged_object(request.type, request.object, request.name, request.protect)
        self.objects += [found] if found else []
        return super().RegisterResource(request)


def stack(name: str) -> str:
    """A stack of this checkout as YAML, without CustomResourceDefinitions."""
    config = yaml.safe_load((paths.ROOT / f"Pulumi.{name}.yaml").read_text())["config"]
    settings = {key.removeprefix(PREFIX): value for key, value in config.items()}
    settings["kubernetes"] = {"context": name}
    recorder = Decoding()
    with tempfile.TemporaryDirectory() as folder:
        if volcano := settings.get("scheduler", {}).get("volcano"):
            volcano["location"] = str(_light(_volcano(), Path(folder) / "volcano.yaml"))
        # A kubectl that renders KubeRay's tree without the megabytes of its schemas.
        kubectl = Path(folder) / "kubectl"
        kubectl.write_text(f"#!/bin/sh\nexec cat {_light(_kuberay(), Path(folder) / 'kuberay.yaml')}\n")
        kubectl.chmod(0o755)
        with (
            patch("stacks.program.build.read_facts", lambda *_: Facts()),
            patch("components.operator.upgrade.look", lambda *_: Live(None, None)),
            patch.dict(os.environ, {"PATH": os.pathsep.join([folder, os.environ["PATH"]])}),
        ):
            pulumi.runtime.set_mocks(recorder.mocks, project="ray-platform", stack=name, preview=True, monitor=recorder)
            run = pulumi.runtime.test(lambda: build(parse(settings)))  # type: ignore[no-untyped-call]  # the SDK's
            run()
    bodies = [_plain(each.body) for each in recorder.objects]
    return str(yaml.dump_all(bodies, Dumper=yaml.CSafeDumper, sort_keys=False))


def _kuberay() -> str:
    tree = tools.KUBERAY.share("config") / "default"
    command = [str(tools.KUBERNETES.program("kubectl")), "kustomize", str(tree)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _volcano() -> str:
    return (tools.VOLCANO.share("installer") / "volcano-development.yaml").read_text()


def _light(text: str, file: Path) -> Path:
    """Writes the objects; of the CRDs' schemas only the names of the fields below `spec`."""
    objects = [each for each in yaml.load_all(text, Loader=yaml.CSafeLoader) if each]
    for definition in (each for each in objects if each["kind"] == "CustomResourceDefinition"):
        for version in definition["spec"]["versions"]:
            spec = version["schema"]["openAPIV3Schema"].get("properties", {}).get("spec", {})
            fields = {name: {"type": "object"} for name in spec.get("properties", {})}
            kept = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
            version["schema"]["openAPIV3Schema"] = kept
    file.write_text(yaml.dump_all(objects, Dumper=yaml.CSafeDumper))
    return file


def _plain(value: Any) -> Any:
    if isinstance(value, Secret) or value is UNKNOWN:
        return _SECRET
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
