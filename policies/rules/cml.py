"""Clusters on Cloudera ML: the release of Ray, and which runtimes run."""

from collections.abc import Iterator

from core.versions import version_tuple
from policies.cml import CML_CLUSTER, groups_of
from policies.rule import Severity, Violations, rule
from policies.rules.images import Registries, is_of, moves
from policies.rules.ray import MinimalVersion
from policies.values import Node, Object

_KINDS = (CML_CLUSTER,)


def runtimes(owner: Object) -> Iterator[Node]:
    """Those of head and workers; without one the project's own runs. Raises NotKnownYetError."""
    yield from (group.at("runtime") for group in groups_of(owner) if group.at("runtime").text)


@rule(
    "cml-min-version",
    Severity.HIGH,
    what="Ray on Cloudera ML is new enough.",
    why="Everybody who sees the workspace reaches the dashboard, which before 2.54 deletes jobs for every client.",
    source="https://docs.ray.io/en/latest/ray-security/index.html; CVE-2026-27482",
    fix="Set rayVersion to a newer release, and use a runtime with it.",
    kinds=_KINDS,
)
def minimal_version(owner: Object, options: MinimalVersion) -> Violations:
    """`rayVersion` is not older than the option."""
    version = owner.root.at("spec", "rayVersion")
    if version_tuple(version.text or "0") < version_tuple(options.version):
        yield version.wrong(f"{version.shown()} is older than {options.version}")


@rule(
    "cml-no-latest",
    Severity.HIGH,
    what="Runtimes on Cloudera ML have a tag with a version, or a digest.",
    why="Workers that start on another day have another Ray than the head, and do not join.",
    source="https://kubernetes.io/docs/concepts/containers/images/#image-names",
    fix="Set runtimeIdentifier to a name with a version.",
    kinds=_KINDS,
)
def no_latest(owner: Object) -> Violations:
    """Rejects a missing tag and `latest` in any form."""
    for each in runtimes(owner):
        if moves(each.text or ""):
            yield each.wrong(f"{each.shown()} is another runtime tomorrow")


@rule(
    "cml-registry",
    Severity.HIGH,
    what="Runtimes on Cloudera ML are from registries that are allowed.",
    why="Whoever may use any runtime can run any program beside the project's files.",
    source="https://kubernetes.io/docs/concepts/security/application-security-checklist/#images",
    fix="Copy the runtime to one of them, or add its registry to the rule's option `allowed`.",
    kinds=_KINDS,
)
def registry(owner: Object, options: Registries) -> Violations:
    """The name begins with an allowed prefix."""
    for each in runtimes(owner) if options.allowed else ():
        if not is_of(each.text or "", options.allowed):
            yield each.wrong(f"{each.shown()} is from none of {', '.join(options.allowed)}")
