"""The suites of tests, and the files of the checkout that decide how the tests of each end."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    """Tests with the marker `suite(name)`.

    Fields: `inputs`: patterns of files, relative to the checkout; `files`: where its tests are, which are inputs, too;
    `share`: the part of its cases that runs when no input has changed; 0 skips the suite.
    """

    inputs: tuple[str, ...]
    files: tuple[str, ...]
    share: float

    programs: tuple[str, ...] = ()
    """Programs of the machine, whose versions are inputs, too."""


SUITES: Mapping[str, Suite] = {
    "stand-ins": Suite(
        inputs=(
            "local/plugins/**/*",
            "local/tools/pulumi/*",
            "local/tools/kubernetes/*",
            "local/tools/kwok/*",
            "testbed/harness.py",
            "tests/engine/provider_stack.py",
            "tests/engine/programs/*",
        ),
        files=(
            "tests/engine/test_language_host.py",
            "tests/engine/test_lifecycle.py",
            "tests/engine/test_provider_fields.py",
            "tests/engine/test_provider_identity.py",
            "tests/engine/test_provider_previews.py",
            "tests/engine/test_provider_waiting.py",
        ),
        share=0.0,
    ),
    "manifests": Suite(
        inputs=(
            "core/*.py",
            "kuberay/**/*",
            "local/crd_schemas.py",
            "local/tools/kuberay/*",
            "local/tools/kuberay-validation/*",
            "local/tools/pod-validation/*",
            "local/tools/kubernetes/*",
            "tests/differential/*.py",
            "tests/unit/kuberay/**/*",
        ),
        files=(
            "tests/differential/test_api_server.py",
            "tests/differential/test_generated.py",
            "tests/differential/test_pods.py",
        ),
        share=0.05,
    ),
    "Redis": Suite(
        inputs=(
            "core/**/*.py",
            "gateway/**/*",
            "components/*.py",
            "components/redis/**/*",
            "components/redis_gateway/*",
            "components/tls/*",
            "tests/gateway/*.py",
            "tests/redis/*.py",
            "testbed/machine.py",
        ),
        files=(
            *(f"tests/gateway/test_{name}.py" for name in ("any_order", "ending", "failover", "in_the_pod", "limits")),
            *(f"tests/gateway/test_{name}.py" for name in ("ray", "repeats", "secrets")),
            *(f"tests/redis/test_{name}.py" for name in ("backup", "existing", "failover", "neighbours")),
            *(f"tests/redis/test_{name}.py" for name in ("tls", "users")),
        ),
        share=0.0,
        programs=("redis-server", "redis-sentinel"),
    ),
    "outages": Suite(
        inputs=(
            "core/**/*.py",
            "kuberay/**/*.py",
            "gateway/**/*",
            "components/*.py",
            "components/ray_cluster/**/*.py",
            "components/redis/**/*",
            "components/redis_gateway/*",
            "components/tls/*",
            "local/real_node/*",
            "local/images/*",
            "local/tools/kuberay/*",
            "local/tools/kubernetes/*",
            "local/tools/kubernetes-node/*",
            "testbed/failover/*.py",
            "testbed/pods/*.py",
            "tests/pods/conftest.py",
            "tests/pods/failover/conftest.py",
            "tests/pods/failover/outages.py",
        ),
        files=("tests/pods/failover/test_outages.py",),
        share=0.0,
    ),
    "real node": Suite(
        inputs=(
            "local/*.py",
            "local/images/*.py",
            "local/install/*",
            "local/real_node/*",
            "local/tools/coredns/*",
            "local/tools/etcd/*",
            "local/tools/kubernetes/*",
            "local/tools/kubernetes-node/*",
            "local/tools/network-policies/*",
            "testbed/pods/node.py",
            "testbed/pods/steps.py",
            "tests/pods/conftest.py",
            "tests/pods/machine.py",
        ),
        files=("tests/pods/test_box.py",),
        share=0.0,
        programs=("containerd", "runc"),
    ),
    "draining": Suite(
        inputs=(
            "components/rollout/*.py",
            "stacks/history/*.py",
            "stacks/impact/live.py",
            "tests/gateway/ray_head.py",
            "tests/gateway/waiting.py",
            "tests/rollout/cluster.py",
        ),
        files=("tests/rollout/test_draining.py",),
        share=0.0,
    ),
    "moved definitions": Suite(
        inputs=(
            "__main__.py",
            "core/**/*.py",
            "components/**/*",
            "kuberay/**/*.py",
            "local/plugins/**/*",
            "local/tools/kuberay/*",
            "local/tools/kubernetes/*",
            "local/tools/pulumi/*",
            "stacks/*.py",
            "testbed/harness.py",
            "testbed/platform_stack.py",
        ),
        files=("tests/engine/test_crds_moved.py",),
        share=0.0,
    ),
    "full disk": Suite(
        inputs=(
            "local/checkpoint.py",
            "local/plugins/**/*",
            "local/pulumi.py",
            "local/tools/pulumi/*",
            "stacks/recovery/*.py",
            "testbed/harness.py",
            "testbed/platform_stack.py",
        ),
        files=("tests/engine/test_full_disk.py",),
        share=0.0,
    ),
    "wheel": Suite(
        inputs=(
            "docs/package.md",
            "examples/python/*",
            "local/plugins/**/*",
            "local/tools/pulumi/*",
            "pyproject.toml",
            "ray_platform/*.py",
            "stacks/platform.py",
            "stacks/settings.py",
            "testbed/harness.py",
            "testbed/platform_stack.py",
        ),
        files=("tests/engine/test_package.py",),
        share=0.0,
    ),
    "pages": Suite(
        inputs=(
            "docs/**/*.md",
            "*.md",
            "mkdocs.yml",
            "local/site.py",
            "ray_platform/*.py",
            "stacks/settings.py",
            "testbed/browser.py",
        ),
        files=("tests/engine/test_site.py",),
        share=0.0,
        programs=("chromium",),
    ),
    "stack files": Suite(
        inputs=(
            *(f"{package}/**/*" for package in ("core", "kuberay", "policies", "components", "stacks")),
            "tests/stack_files/good/*",
        ),
        files=("tests/unit/stacks/test_fuzz.py",),
        share=0.05,
    ),
    "ray start": Suite(
        inputs=("core/problems.py", "core/suggestions.py", "kuberay/ray_start.py", "kuberay/rules.py"),
        files=("tests/unit/kuberay/test_ray_start.py",),
        share=0.05,
    ),
    "Ray on Cloudera ML": Suite(
        inputs=(
            "core/**/*.py",
            "components/*.py",
            "components/cml/*.py",
            "local/images/ray.txt",
            "local/plugins/**/*",
            "local/tools/pulumi/*",
            "testbed/cml/*.py",
            "testbed/harness.py",
            "testbed/ray_python.py",
        ),
        files=("tests/engine/test_cml.py",),
        share=0.0,
    ),
    "Cloudera ML": Suite(
        inputs=("components/cml/*.py", "testbed/cml/*.py", "tests/unit/cml/conftest.py"),
        files=("tests/unit/cml/test_faults.py",),
        share=0.1,
    ),
    "strategic merge": Suite(
        inputs=("core/strategic_merge.py", "core/problems.py"),
        files=("tests/unit/test_strategic_merge.py",),
        share=0.05,
    ),
}
