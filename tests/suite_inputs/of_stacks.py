"""The suites that create and update whole stacks, with the real engine and on real pods.

All that every update runs through is an input of each of them. What only some stacks have is an input where their tests
use it.
"""

from collections.abc import Mapping

from local import paths
from tests.suite_inputs.suite import Suite

OPTIONAL = frozenset(
    {
        "admission_policies",
        "cml",
        "external_cluster",
        "idle_termination",
        "job_template",
        "kueue",
        "logs",
        "monitoring",
        "ray_job",
        "ray_service",
        "redis",
        "redis_gateway",
        "run_history",
        "tls",
        "volcano",
    }
)
"""Components that a stack has only if its stack file asks for them. All others are inputs of all these suites, new ones
too."""


def _all_of(package: str, *names: str) -> tuple[str, ...]:
    """The patterns of all files in folders of a package."""
    return tuple(f"{package}/{name}/**/*" for name in names)


_COMPONENTS = sorted(file.parent.name for file in (paths.ROOT / "components").glob("*/__init__.py"))

UPDATE = (
    "Pulumi*.yaml",
    "__main__.py",
    "core/**/*.py",
    "kuberay/**/*.py",
    "components/*.py",
    *_all_of("components", *(name for name in _COMPONENTS if name not in OPTIONAL)),
    "stacks/*.py",
    "local/*.py",
    *_all_of("local", "install", "plugins"),
    *_all_of("local/tools", "etcd", "kuberay", "kubernetes", "kwok", "pulumi"),
)
"""What every update of a stack in a test runs through: the program and the components of every stack, the engine, and
the cluster."""

NODE = (
    *UPDATE,
    *_all_of("local", "images", "real_node"),
    *_all_of("local/tools", "coredns", "kubernetes-node", "network-policies"),
)
"""The same on real pods, with their images."""

REDIS = (*_all_of("components", "redis", "redis_gateway", "tls"), "gateway/**/*")
"""A stack's Redis with its gateway."""


def _engine(*names: str, inputs: tuple[str, ...]) -> Suite:
    """A suite of files in tests/engine."""
    return Suite((*UPDATE, *inputs), tuple(f"tests/engine/test_{name}.py" for name in names), 0.0)


def _pods(*names: str, inputs: tuple[str, ...]) -> Suite:
    """A suite of files in tests/pods."""
    files = tuple(f"tests/pods/{name}.py" for name in names)
    return Suite((*NODE, *inputs), files, 0.0, programs=("containerd", "runc"))


OF_STACKS: Mapping[str, Suite] = {
    "Kueue": _engine(
        "kueue",
        inputs=(
            *_all_of("components", "job_template", "kueue", "monitoring", "ray_job"),
            *_all_of("local", "host_pods", "tools/kueue"),
            *_all_of("stacks", "page", "run", "status"),
        ),
    ),
    "Volcano": _engine(
        "gangs",
        "queues",
        "volcano",
        inputs=(
            *_all_of("components", "monitoring", "ray_job", "volcano"),
            *_all_of("local", "host_pods", "monitoring", "tools/volcano"),
        ),
    ),
    "operator": _engine(
        "operator_modes", "operator_upgrade", inputs=_all_of("local/tools", "kuberay-1.5", "prometheus-operator")
    ),
    "Redis in a stack": _engine("fault_tolerance", "redis", inputs=REDIS),
    "recovery": _engine(
        "interruption", "platform_interrupted", "recovery", inputs=_all_of("stacks", "environment", "recovery")
    ),
    "split": _engine("split", "tenant_stack", inputs=_all_of("stacks", "environment", "recovery")),
    "rehearsal": _engine(
        "rehearsal",
        "rehearse",
        inputs=(
            *_all_of("components", *sorted(OPTIONAL)),
            *_all_of("local", "host_pods", "rehearse", "tools/kueue", "tools/volcano"),
            *_all_of("stacks", "planning"),
            "stacks/review/rehearsed.py",
        ),
    ),
    "workflows": _engine(
        "workflows",
        inputs=(
            "docs/examples/**/*",
            "policies/**/*",
            "stacks/**/*",
        ),
    ),
    "jobs": _pods(
        "test_external_clusters",
        "test_idle_termination",
        "test_ray_jobs",
        "test_run_history",
        inputs=(
            *_all_of("components", "external_cluster", "idle_termination", "job_template", "monitoring", "ray_job"),
            *_all_of("components", "run_history", "volcano"),
            *_all_of("stacks", "run", "runs", "status"),
            "local/tools/volcano/*",
        ),
    ),
    "services": _pods(
        "failover/test_services",
        "test_ray_services",
        inputs=(*REDIS, *_all_of("components", "monitoring", "ray_service")),
    ),
    "monitoring": _pods(
        "test_monitoring",
        inputs=(
            *_all_of("components", "monitoring", "tls", "volcano"),
            *_all_of("local", "monitoring", "tools/volcano"),
        ),
    ),
    "outages": _pods(
        "failover/test_outages",
        "failover/test_removal",
        inputs=(*REDIS, "components/ray_job/**/*"),
    ),
}
