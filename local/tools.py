"""The programs of the rehearsal: pinned in local/tools/*/go.mod, built once into the cache by ordinary `go build`.

A tool's folder in the cache carries its version and a digest of its go.mod, go.sum and Go files of ours, so another pin
is another folder, and checkouts with the same pins share one.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from local import paths
from local.errors import RehearsalError
from local.progress import Report, step


@dataclass(frozen=True)
class Tool:
    """A Go module that holds one or more programs.

    Fields: `name` is the folder under local/tools; `module` the Go module whose version counts; `programs` maps the
    name of a binary to its package, `.` for the one in that folder; `stamps` makes linker variables from the version;
    `files` names folders of the module that come along (under `share/`); `pins` is the folder under local/tools where
    another tool has the same module pinned; `environment` is the compiler's.
    """

    name: str
    module: str
    programs: dict[str, str]
    stamps: Callable[[str], dict[str, str]] = field(default=lambda _: {})
    files: tuple[str, ...] = ()
    pins: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def source(self) -> Path:
        return paths.ROOT / "local" / "tools" / (self.pins or self.name)

    @property
    def version(self) -> str:
        """The pinned version, e.g. `v1.34.4`."""
        pinned = re.search(
            rf"(?m)^(?:require)?\s*{re.escape(self.module)} (v\S+)", (self.source / "go.mod").read_text()
        )
        if pinned is None:
            raise RehearsalError(f"{self.source / 'go.mod'} pins no version of {self.module}: add a require line")
        return pinned[1]

    @property
    def folder(self) -> Path:
        """Where the built tool lies: `bin/` and `share/` below it."""
        ours = sorted(self.source.glob("*.go"))
        pins = b"".join(file.read_bytes() for file in (self.source / "go.mod", self.source / "go.sum", *ours))
        return paths.cache() / "tools" / f"{self.name}-{self.version}-{hashlib.sha256(pins).hexdigest()[:12]}"

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name

    def share(self, name: str) -> Path:
        """A folder of the module that came along, e.g. KubeRay's `config`."""
        return self.folder / "share" / name

    @property
    def built(self) -> bool:
        return self.folder.is_dir()


def _kubernetes_stamps(version: str) -> dict[str, str]:
    # Without them every client and `kubectl version` sees v0.0.0 (k8s.io/kubernetes hack/lib/version.sh sets the same).
    major, minor = version.removeprefix("v").split(".")[:2]
    package = "k8s.io/component-base/version"
    return {f"{package}.gitVersion": version, f"{package}.gitMajor": major, f"{package}.gitMinor": minor}


ETCD = Tool("etcd", "go.etcd.io/etcd/server/v3", {"etcd": "go.etcd.io/etcd/server/v3"})
KUBERNETES = Tool(
    "kubernetes",
    "k8s.io/kubernetes",
    {
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
    },
    stamps=_kubernetes_stamps,
)
KWOK = Tool("kwok", "sigs.k8s.io/kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}, files=("kustomize/stage",))
KUBERAY = Tool(
    "kuberay",
    "github.com/ray-project/kuberay/ray-operator",
    {"ray-operator": "github.com/ray-project/kuberay/ray-operator"},
    files=("config",),
)
KUBERAY_1_5 = Tool(
    "kuberay-1.5",
    KUBERAY.module,
    KUBERAY.programs,
    files=KUBERAY.files,
)
"""The release before, for stacks that have it still, and for tests of upgrades."""

VOLCANO = Tool(
    "volcano",
    "volcano.sh/volcano",
    {name: f"volcano.sh/volcano/cmd/{name}" for name in ("scheduler", "controller-manager", "webhook-manager")},
    files=("installer",),
    environment={"CGO_ENABLED": "0"},
)
"""Built where a stack wants it, and for tests. Without shared libraries, for images that hold nothing else."""

KUEUE = Tool(
    "kueue",
    "sigs.k8s.io/kueue",
    {"kueue": "sigs.k8s.io/kueue/cmd/kueue"},
    stamps=lambda version: {"sigs.k8s.io/kueue/pkg/version.GitVersion": version},
    files=("config/components", "config/default"),
    environment={"CGO_ENABLED": "0"},
)
"""As Volcano."""

PULUMI = Tool(
    "pulumi",
    "github.com/pulumi/pulumi/pkg/v3",
    {"pulumi": "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"},
    stamps=lambda version: {"github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": version},
)
KUBERAY_VALIDATION = Tool("kuberay-validation", KUBERAY.module, {"kuberay-validation": "."})
"""What an API server and the operator make of manifests."""

KUBERNETES_NODE = Tool(
    "kubernetes-node",
    KUBERNETES.module,
    {
        "kubelet": "k8s.io/kubernetes/cmd/kubelet",
        "kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy",
        "pause": ".",
    },
    stamps=_kubernetes_stamps,
)
COREDNS = Tool("coredns", "github.com/coredns/coredns", {"coredns": "."})
NETWORK_POLICIES = Tool("network-policies", "sigs.k8s.io/kube-network-policies", {"network-policies": "."})
"""What lets the packets of pods through, or not."""

KUBERAY_STATIC = Tool(
    "kuberay-static", KUBERAY.module, KUBERAY.programs, pins=KUBERAY.name, environment={"CGO_ENABLED": "0"}
)
"""The operator without shared libraries, for an image that holds nothing else."""

KUBE_SCORE = Tool(
    "kube-score", "github.com/zegl/kube-score", {"kube-score": "github.com/zegl/kube-score/cmd/kube-score"}
)
"""Another checker of manifests, for `python -m benchmarks.checkers`, which builds it."""

TOOLS = (ETCD, KWOK, KUBERAY, PULUMI, KUBERNETES)
"""Quick ones first, so that a missing compiler or proxy shows early."""

NODE_TOOLS = (KUBERAY_STATIC, COREDNS, NETWORK_POLICIES, KUBERNETES_NODE)
"""What the real node needs beside them."""

TEST_TOOLS = (KUBERAY_VALIDATION, KUBERAY_1_5, VOLCANO, KUEUE)
"""What tests need beside them."""


def kuberay(version: str | None) -> Tool:
    """The operator of a version, without the leading v; the pinned one where it is none of those that are known."""
    return KUBERAY_1_5 if version and f"v{version}" == KUBERAY_1_5.version else KUBERAY


def build_missing(tools: tuple[Tool, ...] = TOOLS) -> None:
    """Build what the cache does not hold yet, showing how far it is.

    Raises:
        RehearsalError: Go is missing or too old, or a build failed; with the tail of what the compiler said.
    """
    missing = [tool for tool in tools if not tool.built]
    for number, tool in enumerate(missing, start=1):
        with step(f"Building {tool.name} {tool.version} ({number}/{len(missing)})") as report:
            build(tool, report)


def build(tool: Tool, report: Report) -> None:
    """Build one tool into the cache; a second process that wants the same tool waits and finds it there."""
    if shutil.which("go") is None:
        raise RehearsalError(
            "Go is not on the PATH; the rehearsal builds Kubernetes, KWOK, KubeRay and Pulumi with it, once. "
            "Install Go 1.24 or newer (https://go.dev/dl, or your system's package) and run the command again."
        )
    with _only_one(tool):
        if tool.built:
            return
        tool.folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{tool.name}-", dir=tool.folder.parent))
        try:
            _compile(tool, scratch / "bin", report)
            _copy_files(tool, scratch / "share")
            scratch.rename(tool.folder)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _only_one(tool: Tool) -> Iterator[None]:
    lock = paths.cache() / "locks" / tool.folder.name
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _compile(tool: Tool, target: Path, report: Report) -> None:
    target.mkdir(parents=True)
    packages = list(tool.programs.values())
    report(0.0, "downloading Go modules")
    total = len(_go(tool, "list", "-deps", *packages).splitlines())
    flags = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in tool.stamps(tool.version).items())])
    done = 0

    def compiled(package: str) -> None:
        nonlocal done
        done += 1
        report(min(done / total, 1.0), package)

    for program, package in tool.programs.items():
        _go(tool, "build", "-v", "-trimpath", "-ldflags", flags, "-o", str(target / program), package, each=compiled)


def _copy_files(tool: Tool, target: Path) -> None:
    if not tool.files:
        return
    module = Path(_go(tool, "list", "-m", "-f", "{{.Dir}}", tool.module).strip())
    for folder in tool.files:
        # Go keeps its module cache read-only; copy the contents, not the modes, so that the cache can be removed.
        shutil.copytree(module / folder, target / folder, copy_function=shutil.copyfile)
        for made in (target / folder, *(target / folder).rglob("*")):
            made.chmod(0o755 if made.is_dir() else 0o644)


def _go(tool: Tool, *arguments: str, each: Callable[[str], None] | None = None) -> str:
    """Run go in the tool's folder and return its standard output; `each` gets every line of standard error."""
    with tempfile.TemporaryFile("w+") as output:
        run = subprocess.Popen(
            ["go", *arguments],
            cwd=tool.source,
            env={**os.environ, **tool.environment},
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = []
        assert run.stderr is not None
        for line in run.stderr:
            said.append(line.rstrip())
            if each:
                each(said[-1])
        if run.wait() != 0:
            tail = "\n  ".join(said[-15:])
            raise RehearsalError(f"go {arguments[0]} of {tool.name} {tool.version} failed:\n  {tail}")
        output.seek(0)
        return output.read()
