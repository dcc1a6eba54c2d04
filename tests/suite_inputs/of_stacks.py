"""The suites that create and update whole stacks, with the real engine and on real pods.

An update runs through nearly all of the program, so nearly all of it is an input of each of them. Other commands than
`up`, and the gateway, are inputs where their tests use them.
"""

from collections.abc import Mapping

from tests.suite_inputs.suite import Suite

UPDATE = (
    "Pulumi*.yaml",
    "__main__.py",
    *(f"{package}/**/*" for package in ("core", "kuberay", "policies", "components", "local")),
    "stacks/*.py",
    "stacks/objects/*.py",
    "stacks/checks/*.py",
    "stacks/program/*.py",
    "stacks/commands/environment/*.py",
    "stacks/planning/*.py",
)
"""What an update of a stack in a test runs through: the program, the engine, and the cluster with its programs."""


def _engine(*names: str, inputs: tuple[str, ...] = ()) -> Suite:
    """A suite of files in tests/engine."""
    return Suite((*UPDATE, *inputs), tuple(f"tests/engine/test_{name}.py" for name in names), 0.0)


def _pods(*names: str, inputs: tuple[str, ...] = ()) -> Suite:
    """A suite of files in tests/pods."""
    files = tuple(f"tests/pods/{name}.py" for name in names)
    return Suite((*UPDATE, "stacks/commands/images/*.py", *inputs), files, 0.0, programs=("containerd", "runc"))


def _commands(*names: str) -> tuple[str, ...]:
    """The patterns of all files of commands in stacks/."""
    return tuple(f"stacks/commands/{name}/**/*" for name in names)


OF_STACKS: Mapping[str, Suite] = {
    "Kueue": _engine("kueue", inputs=_commands("page", "run", "status")),
    "Volcano": _engine("gangs", "queues", "volcano"),
    "operator": _engine("operator_modes", "operator_upgrade"),
    "Redis in a stack": _engine("fault_tolerance", "redis", inputs=("gateway/**/*",)),
    "recovery": _engine("interruption", "platform_interrupted", "recovery", inputs=_commands("recover")),
    "split": _engine("split", "tenant_stack", inputs=_commands("recover")),
    "rehearsal": _engine("rehearsal", "rehearse", inputs=_commands("review")),
    "workflows": _engine("workflows", inputs=("docs/examples/**/*", "stacks/**/*")),
    "jobs": _pods(
        "test_external_clusters",
        "test_idle_termination",
        "test_ray_jobs",
        "test_run_history",
        inputs=_commands("run", "runs", "status"),
    ),
    "services": _pods("failover/test_services", "test_ray_services", inputs=("gateway/**/*",)),
    "monitoring": _pods("test_monitoring"),
    "outages": _pods("failover/test_outages", "failover/test_removal", inputs=("gateway/**/*",)),
}
