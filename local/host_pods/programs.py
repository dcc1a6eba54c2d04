"""The known container images, and the programs that run for them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from local.tools import KUBERAY, KUBERAY_1_5, KUEUE, VOLCANO, Tool


@dataclass(frozen=True)
class HostProgram:
    """A program that runs for a container image.

    Fields: the `tool` that has it, its `name` there, and the `arguments` to append. They bind its servers to loopback,
    and replace what a pod reads from its mounted account: `{kubeconfig}`, `{namespace}`. `serves`: ports of the pod
    that others call; the program gets a free port of loopback for each, `{ports[8443]}`. `settings`, for a program that
    has no such arguments: YAML that is merged into mounted files of these names. `others`: tools that have it in other
    versions.
    """

    tool: Tool
    name: str
    arguments: tuple[str, ...]
    serves: tuple[int, ...] = ()
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    others: tuple[Tool, ...] = ()

    def of(self, tag: str) -> "HostProgram":
        """The program in the version of an image's tag; unchanged if that is none of `others`."""
        tool = next((tool for tool in self.others if tool.version == tag), self.tool)
        return replace(self, tool=tool)

    def further(self, kubeconfig: str, namespace: str, ports: Mapping[int, int]) -> list[str]:
        """The arguments to append for a program with these values."""
        return [text.format(kubeconfig=kubeconfig, namespace=namespace, ports=ports) for text in self.arguments]

    def adapted(self, file: str, content: bytes, ports: Mapping[int, int]) -> bytes:
        """The content of a mounted file, with `settings` merged into it."""
        if file not in self.settings:
            return content
        return yaml.safe_dump(_merged(yaml.safe_load(content), self.settings[file], ports)).encode()


def _merged(base: Any, over: Any, ports: Mapping[int, int]) -> Any:
    """Merges `over` into `base`. The number of a port of the pod becomes its port of loopback, and so does
    `{ports[PORT]}` in a text."""
    if isinstance(over, Mapping):
        return {**base, **{key: _merged(base.get(key, {}), value, ports) for key, value in over.items()}}
    return over.format(ports=ports) if isinstance(over, str) else ports.get(over, over)


_OF_VOLCANO = ("--kubeconfig={kubeconfig}", "--healthz-address=127.0.0.1:0")

PROGRAMS = {
    "kuberay/operator": HostProgram(
        KUBERAY,
        "ray-operator",
        (
            "--metrics-addr=127.0.0.1:{ports[8080]}",
            "--health-probe-bind-address=127.0.0.1:0",
            "--leader-election-namespace={namespace}",
        ),
        serves=(8080,),
        others=(KUBERAY_1_5,),
    ),
    "volcanosh/vc-scheduler": HostProgram(
        VOLCANO, "scheduler", (*_OF_VOLCANO, "--listen-address=127.0.0.1:{ports[8080]}"), serves=(8080,)
    ),
    "volcanosh/vc-controller-manager": HostProgram(
        VOLCANO, "controller-manager", (*_OF_VOLCANO, "--listen-address=127.0.0.1:{ports[8081]}"), serves=(8081,)
    ),
    "volcanosh/vc-webhook-manager": HostProgram(
        VOLCANO,
        "webhook-manager",
        (*_OF_VOLCANO, "--listen-address=127.0.0.1", "--port={ports[8443]}"),
        serves=(8443,),
    ),
    "kueue/kueue": HostProgram(
        KUEUE,
        "kueue",
        ("--kubeconfig={kubeconfig}",),
        serves=(9443, 8443),
        settings={
            "controller_manager_config.yaml": {
                "webhook": {"host": "127.0.0.1", "port": 9443},
                "metrics": {"bindAddress": "127.0.0.1:{ports[8443]}"},
                "health": {"healthProbeBindAddress": "127.0.0.1:0"},
            }
        },
    ),
}
"""By the end of the image's repository, with any registry or mirror."""


def program_of(image: str) -> HostProgram | None:
    """The program for an image, by the end of its repository and the tag; None if the image is unknown."""
    path, _, last = image.partition("@")[0].rpartition("/")
    name, _, tag = last.partition(":")
    found = next((program for end, program in PROGRAMS.items() if f"/{path}/{name}".endswith(f"/{end}")), None)
    return found.of(tag) if found else None


def tools_of(images: Iterable[str]) -> tuple[Tool, ...]:
    """The tools that have the programs of images, each once."""
    known = [program.tool for image in sorted(images) if (program := program_of(image))]
    return tuple(tool for index, tool in enumerate(known) if tool not in known[:index])
