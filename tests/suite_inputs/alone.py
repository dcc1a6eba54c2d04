"""The suites that depend on little of the checkout."""

from collections.abc import Mapping

from tests.suite_inputs.suite import Suite

ALONE: Mapping[str, Suite] = {
    "stand-ins": Suite(
        inputs=(
            "local/plugins/**/*",
            "local/tools/pulumi/*",
            "local/tools/pulumi-kubernetes/**/*",
            "local/tools/kubernetes/*",
            "local/tools/kwok/*",
            "tests/engine/programs/*",
        ),
        files=(
            "tests/engine/test_language_host.py",
            "tests/engine/test_lifecycle.py",
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
            "components/payloads/redis/*",
            "components/redis_gateway/*",
            "components/tls/*",
            "components/payloads/pod_certificate.py",
            "tests/gateway/*.py",
            "tests/redis/*.py",
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
        ),
        files=("tests/pods/test_box.py",),
        share=0.0,
        programs=("containerd", "runc"),
    ),
    "draining": Suite(
        inputs=(
            "components/rollout/*.py",
            "components/payloads/*_in_head.py",
            "stacks/commands/plan/history/*.py",
            "stacks/commands/impact/live.py",
            "tests/gateway/ray_head.py",
            "tests/rollout/cluster.py",
        ),
        files=("tests/rollout/test_draining.py",),
        share=0.0,
    ),
    "full disk": Suite(
        inputs=(
            "local/checkpoint.py",
            "local/plugins/**/*",
            "local/pulumi.py",
            "local/tools/pulumi/*",
            "local/tools/pulumi-kubernetes/**/*",
            "stacks/commands/recover/*.py",
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
            "local/tools/pulumi-kubernetes/**/*",
            "pyproject.toml",
            "ray_platform/*.py",
            "stacks/program/platform.py",
            "stacks/settings.py",
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
            "components/payloads/cml_application.py",
            "local/images/ray.txt",
            "local/plugins/**/*",
            "local/tools/pulumi/*",
            "local/tools/pulumi-kubernetes/**/*",
            "testbed/cml/*.py",
        ),
        files=("tests/engine/test_cml.py",),
        share=0.0,
    ),
    "Cloudera ML": Suite(
        inputs=("components/cml/*.py", "components/payloads/cml_application.py", "testbed/cml/*.py"),
        files=("tests/unit/cml/test_faults.py",),
        share=0.1,
    ),
    "strategic merge": Suite(
        inputs=("core/strategic_merge.py", "core/problems.py"),
        files=("tests/unit/test_strategic_merge.py",),
        share=0.05,
    ),
}
