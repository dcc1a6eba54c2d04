"""The programs of the rehearsal and their versions, pinned in local/tools/*/go.mod.

The name of a tool's folder in the cache contains its version and a digest of its go.mod, go.sum, our own Go files, its
build tags and how it is linked. So another pin is another folder, and checkouts with the same pins share one.
local/install installs them.
"""

import hashlib
import platform
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from local import paths
from local.errors import RehearsalError

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
"""This machine's architecture, in the names of Go and of publishers."""

PLATFORM = f"{platform.system().lower()}-{ARCHITECTURE}"

LINKING = {"CGO_ENABLED": "0"}
"""Programs are built without shared libraries: some run in images that contain nothing else, none needs a C compiler,
and Go's standard library is compiled once for all of them."""


@dataclass(frozen=True)
class Release:
    """Files with built programs that a tool's project publishes for Linux.

    Fields: `url` is the pattern of their address and `member` that of a program's path in the archive; both support
    {version}, {architecture} and {program}. Without `member` the file is the program itself. `architectures` maps Go's
    names to the publisher's own.
    """

    url: str
    member: str | None = None
    architectures: Mapping[str, str] = field(default_factory=dict)

    def files(self, programs: Iterable[str], version: str, architecture: str) -> dict[str, dict[str, str | None]]:
        """The addresses, each with its programs and their paths in the archive."""
        found: dict[str, dict[str, str | None]] = {}
        for program in programs:
            words = {
                "version": version,
                "program": program,
                "architecture": self.architectures.get(architecture, architecture),
            }
            member = self.member.format(**words) if self.member else None
            found.setdefault(self.url.format(**words), {})[program] = member
        return found


@dataclass(frozen=True)
class Tool:
    """A Go module with one or more programs.

    Fields: `name` is the folder under local/tools; `module` the Go module that defines the version; `programs` maps the
    name of a binary to its package, `.` for the one in that folder; `stamps` returns linker variables for the version;
    `files` names folders of the module that are copied (to `share/`); `release` describes the project's published
    programs; `tags` are build tags.
    """

    name: str
    module: str
    programs: dict[str, str]
    stamps: Callable[[str], dict[str, str]] = field(default=lambda _: {})
    files: tuple[str, ...] = ()
    release: Release | None = None
    tags: tuple[str, ...] = ()

    @property
    def source(self) -> Path:
        return paths.ROOT / "local" / "tools" / self.name

    @property
    def version(self) -> str:
        """The pinned version, e.g. `v1.36.5`."""
        return self.version_of(self.module)

    def version_of(self, module: str) -> str:
        """The pinned version of a module that its folder requires.

        Raises:
            RehearsalError: it does not require the module.
        """
        pinned = re.search(rf"(?m)^(?:require)?\s*{re.escape(module)} (v\S+)", (self.source / "go.mod").read_text())
        if pinned is None:
            raise RehearsalError(f"{self.source / 'go.mod'} pins no version of {module}: add a require line")
        return pinned[1]

    @property
    def go(self) -> str:
        """The version of Go that it needs at least, e.g. `1.25.0`."""
        required = re.search(r"(?m)^go (\S+)", (self.source / "go.mod").read_text())
        return required[1] if required else "1.21"

    @property
    def folder(self) -> Path:
        """The folder of the installed tool, with `bin/` and `share/`."""
        ours = sorted(file for pattern in ("*.go", "*/go.mod") for file in self.source.rglob(pattern))
        files = (self.source / "go.mod", self.source / "go.sum", *ours)
        how = f"{LINKING}{','.join(self.tags)}"
        pins = b"".join([how.encode(), *(file.read_bytes() for file in files)])
        return paths.cache() / "tools" / f"{self.name}-{self.version}-{hashlib.sha256(pins).hexdigest()[:12]}"

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name

    def share(self, name: str) -> Path:
        """A copied folder of the module, e.g. KubeRay's `config`."""
        return self.folder / "share" / name

    @property
    def installed(self) -> bool:
        return self.folder.is_dir()

    def release_files(self, architecture: str) -> dict[str, dict[str, str | None]]:
        """The published files for Linux on an architecture, as in `Release.files`; none for our own programs."""
        published = [program for program, package in self.programs.items() if package != "."]
        return self.release.files(published, self.version, architecture) if self.release else {}


def _kubernetes_stamps(version: str) -> dict[str, str]:
    # Without them every client and `kubectl version` shows v0.0.0 (k8s.io/kubernetes hack/lib/version.sh sets the
    # same).
    major, minor = version.removeprefix("v").split(".")[:2]
    package = "k8s.io/component-base/version"
    return {f"{package}.gitVersion": version, f"{package}.gitMajor": major, f"{package}.gitMinor": minor}


def prometheus_release(version: str) -> str:
    """Prometheus' release of the version of its Go module: 3.13.5 of v0.313.5 (prometheus/prometheus, README)."""
    _, minor, patch = version.split(".")
    return f"{minor[0]}.{int(minor[1:])}.{patch}"


_DL_K8S_IO = Release("https://dl.k8s.io/release/{version}/bin/linux/{architecture}/{program}")

ETCD = Tool(
    "etcd",
    "go.etcd.io/etcd/server/v3",
    {"etcd": "go.etcd.io/etcd/server/v3"},
    release=Release(
        "https://github.com/etcd-io/etcd/releases/download/{version}/etcd-{version}-linux-{architecture}.tar.gz",
        member="etcd-{version}-linux-{architecture}/{program}",
    ),
)
KUBERNETES = Tool(
    "kubernetes",
    "k8s.io/kubernetes",
    {
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
    },
    stamps=_kubernetes_stamps,
    release=_DL_K8S_IO,
)
KWOK = Tool(
    "kwok",
    "sigs.k8s.io/kwok",
    {"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
    files=("kustomize/stage",),
    release=Release(
        "https://github.com/kubernetes-sigs/kwok/releases/download/{version}/{program}-linux-{architecture}"
    ),
)
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
"""The previous release, for stacks that still use it, and for tests of upgrades."""

VOLCANO = Tool(
    "volcano",
    "volcano.sh/volcano",
    {name: f"volcano.sh/volcano/cmd/{name}" for name in ("scheduler", "controller-manager", "webhook-manager")},
    files=("installer",),
)
"""Built only for stacks that use it, and for tests."""

KUEUE = Tool(
    "kueue",
    "sigs.k8s.io/kueue",
    {"kueue": "sigs.k8s.io/kueue/cmd/kueue"},
    stamps=lambda version: {"sigs.k8s.io/kueue/pkg/version.GitVersion": version},
    files=("config/components", "config/default"),
)
"""As Volcano."""

PULUMI = Tool(
    "pulumi",
    "github.com/pulumi/pulumi/pkg/v3",
    {"pulumi": "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"},
    stamps=lambda version: {"github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": version},
    release=Release(
        "https://github.com/pulumi/pulumi/releases/download/{version}/pulumi-{version}-linux-{architecture}.tar.gz",
        member="pulumi/{program}",
        architectures={"amd64": "x64"},
    ),
)
KUBERNETES_PROVIDER = "4.25.0"
"""The release of Pulumi's provider for Kubernetes that PULUMI_KUBERNETES pins by its commit: the newest that Go's
module proxy has."""

PULUMI_KUBERNETES = Tool(
    "pulumi-kubernetes",
    "github.com/pulumi/pulumi-kubernetes/provider/v4",
    {"pulumi-resource-kubernetes": "."},
    stamps=lambda _: {"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version.Version": KUBERNETES_PROVIDER},
    files=("cmd/pulumi-resource-kubernetes",),
)
"""Installed where the user has no such provider (local/plugins/selection.py)."""

KUBERAY_VALIDATION = Tool("kuberay-validation", KUBERAY.module, {"kuberay-validation": "."})
"""The validation of manifests by an API server and the operator. Its API server is that of Kubernetes 1.34: KubeRay
1.6's controller-runtime (0.22) does not compile with client-go 0.36. tests/differential/test_api_server.py compares it
with the rehearsal's."""

POD_VALIDATION = Tool("pod-validation", KUBERNETES.module, {"pod-validation": "."})
"""The validation of pods by an API server, and Pod Security admission."""

KUBERNETES_NODE = Tool(
    "kubernetes-node",
    KUBERNETES.module,
    {
        "kubelet": "k8s.io/kubernetes/cmd/kubelet",
        "kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy",
        "pause": ".",
    },
    stamps=_kubernetes_stamps,
    release=_DL_K8S_IO,
)
COREDNS = Tool("coredns", "github.com/coredns/coredns", {"coredns": "."})
NETWORK_POLICIES = Tool("network-policies", "sigs.k8s.io/kube-network-policies", {"network-policies": "."})
"""Allows or drops the packets of pods."""

OTEL_COLLECTOR = Tool("otel-collector", "go.opentelemetry.io/collector/otelcol", {"otelcol": "."})
"""The collector of logs, and a receiver for tests. Built only for real nodes of stacks with logs, and for tests."""

KUBE_SCORE = Tool(
    "kube-score", "github.com/zegl/kube-score", {"kube-score": "github.com/zegl/kube-score/cmd/kube-score"}
)
"""Another checker of manifests, for `python -m benchmarks.checkers`, which builds it."""

PROMETHEUS_OPERATOR = Tool(
    "prometheus-operator",
    "github.com/prometheus-operator/prometheus-operator",
    {},
    files=("example/prometheus-operator-crd",),
)
"""The definitions of its kinds alone; no program of it runs here."""

PROM_LABEL_PROXY = Tool(
    "prom-label-proxy",
    "github.com/prometheus-community/prom-label-proxy",
    {"prom-label-proxy": "github.com/prometheus-community/prom-label-proxy"},
)
"""The proxy by which a tenant sees its own metrics. Built only for real nodes of stacks with `monitoring` of mode
`install`, and for tests."""

PROMETHEUS = Tool(
    "prometheus",
    "github.com/prometheus/prometheus",
    {"prometheus": "github.com/prometheus/prometheus/cmd/prometheus"},
    stamps=lambda version: {"github.com/prometheus/common/version.Version": prometheus_release(version)},
    tags=("netgo", "remove_all_sd", "enable_kubernetes_sd"),
)
"""As the proxy. It finds targets in files and in Kubernetes, and has no pages for browsers."""

ALERTMANAGER = Tool(
    "alertmanager",
    "github.com/prometheus/alertmanager",
    {name: f"github.com/prometheus/alertmanager/cmd/{name}" for name in ("alertmanager", "amtool")},
    stamps=lambda version: {"github.com/prometheus/common/version.Version": version.removeprefix("v")},
)
"""As the proxy. 0.31 is the last whose Go module has the pages for browsers, without which it does not compile."""

VICTORIA_METRICS = "github.com/VictoriaMetrics/VictoriaMetrics"

VICTORIA_LOGS = Tool(
    "victoria-logs",
    "github.com/VictoriaMetrics/VictoriaLogs",
    {
        "victoria-logs": "github.com/VictoriaMetrics/VictoriaLogs/app/victoria-logs",
        "vmauth": f"{VICTORIA_METRICS}/app/vmauth",
    },
)
"""A store of logs, and the proxy by which a tenant reaches its own. Built only for real nodes of stacks with `logs` of
mode `install`, and for tests."""

REDIS_EXPORTER = Tool(
    "redis-exporter",
    "github.com/oliver006/redis_exporter",
    {"redis_exporter": "github.com/oliver006/redis_exporter"},
    stamps=lambda version: {"main.BuildVersion": version},
)
"""Metrics of Redis. Built only for real nodes of stacks with `redis.exporter`, and for tests."""

ARGO_CD = Tool(
    "argo-cd",
    "github.com/argoproj/argo-cd/v3",
    {"argocd": ".", "kustomize": "sigs.k8s.io/kustomize/kustomize/v5"},
    files=("manifests/crds",),
)
"""Its controller of Applications and its repository server, for tests."""

CERT_MANAGER = Tool(
    "cert-manager", "github.com/cert-manager/cert-manager", {"cert-manager": "."}, files=("deploy/crds",)
)
"""The controllers of certificates and issuers, for tests."""

ACTIONLINT = Tool(
    "actionlint", "github.com/rhysd/actionlint", {"actionlint": "github.com/rhysd/actionlint/cmd/actionlint"}
)
"""Checks the workflows for GitHub in docs/examples, for tests."""

LOCAL_KMS = Tool("local-kms", "github.com/nsmithuk/local-kms", {"local-kms": "."})
"""A key service for tests."""

VERSITYGW = Tool(
    "versitygw", "github.com/versity/versitygw", {"versitygw": "github.com/versity/versitygw/cmd/versitygw"}
)
"""A server of S3 for tests; its buckets are folders."""

TOOLS = (ETCD, KWOK, KUBERAY, PULUMI, PULUMI_KUBERNETES, KUBERNETES)
"""Fast ones first, so that a missing compiler or proxy shows early."""

NODE_TOOLS = (COREDNS, NETWORK_POLICIES, KUBERNETES_NODE)
"""Additional tools of the real node."""

TEST_TOOLS = (
    ACTIONLINT,
    ALERTMANAGER,
    ARGO_CD,
    CERT_MANAGER,
    KUBERAY_VALIDATION,
    POD_VALIDATION,
    KUBERAY_1_5,
    VOLCANO,
    KUEUE,
    LOCAL_KMS,
    OTEL_COLLECTOR,
    PROMETHEUS,
    PROM_LABEL_PROXY,
    PROMETHEUS_OPERATOR,
    REDIS_EXPORTER,
    VERSITYGW,
    VICTORIA_LOGS,
)
"""Additional tools of tests."""

ALL = (*TOOLS, *NODE_TOOLS, *TEST_TOOLS, KUBE_SCORE)


def kuberay(version: str | None) -> Tool:
    """The operator of a version, without the leading v; the pinned one if the version is unknown."""
    return KUBERAY_1_5 if version and f"v{version}" == KUBERAY_1_5.version else KUBERAY
