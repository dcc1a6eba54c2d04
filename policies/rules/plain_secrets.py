"""Secrets in plain text, anywhere but in the environment of pods (pods.py) and Redis (redis.py)."""

import re
from collections.abc import Iterator
from typing import Any

from core.pods import RAY_CLUSTERS, RAY_JOBS
from core.problems import Path
from core.secrets import is_secret_by_name, secret_in, secrets_of_command
from core.yaml_reader.document import documents
from core.yaml_reader.scalars import DocumentError
from policies.cml import CML_CLUSTER, groups_of
from policies.rule import Severity, Violations, rule
from policies.search import OBJECT, TEXT, inside
from policies.values import Node, NotKnownYetError, Object, is_placeholder
from policies.walk import containers

_PUBLIC = ("ca.crt", "tls.crt")
"""Keys of Secrets that are public: a server shows its certificates to every client."""

_ARGO_CDS_LABEL = "argocd.argoproj.io/secret-type"
_ARGO_CD = ("type", "url", "name", "project", "server", "insecure", "enableLfs", "enableOCI", "proxy", "noProxy")
"""Keys of Secrets of Argo CD that are not secrets (argo-cd.readthedocs.io, Declarative Setup)."""


@rule(
    "secrets-encrypted",
    Severity.CRITICAL,
    what="The values of Secrets are secrets of Pulumi.",
    why="Otherwise they are in plain text in the state and in every preview.",
    source="https://www.pulumi.com/docs/iac/concepts/secrets/",
    fix="Wrap the values in pulumi.Output.secret, or take them from config with require_secret.",
    kinds=("Secret",),
)
def secrets_encrypted(owner: Object) -> Violations:
    """All values except certificates are secrets of Pulumi, in objects that Pulumi creates. Messages show no value."""
    if owner.protected is None:
        return
    for key in ("data", "stringData"):
        values = owner.root.at(key)
        if not values.secret:
            plain = (value for name, value in values.entries() if not value.secret and name not in _PUBLIC)
            yield from (value.wrong("is not encrypted") for value in plain if value.is_set)


@rule(
    "no-plain-secrets",
    Severity.CRITICAL,
    what="No file contains a Secret with its values, and no object a secret in plain text.",
    why="Base64 hides nothing: whoever may read the repository, or the object, reads it.",
    source="https://kubernetes.io/docs/concepts/security/secrets-good-practices/",
    fix="Use sealed or external secrets, or Pulumi's. Then replace the values: they have been seen.",
)
def no_plain_secrets(owner: Object) -> Violations:
    """Rejects the values of Secrets in files, except certificates and placeholders; and in all other objects texts that
    look like secrets, and runtime environments and ConfigMaps with variables that are named so. Shows no value."""
    if owner.kind == "Secret":
        yield from _in_secret(owner)
    elif owner.kind != "CustomResourceDefinition":
        judged = {(*each.node.path, key) for each in containers(owner) for key in ("env", "command", "args")}
        judged |= {node.path for what, node in inside(owner) if what in (OBJECT, TEXT)}
        yield from _in_texts(owner.root, judged, owner.kind in _WITH_TEXTS)
        yield from _named(owner)


_WITH_TEXTS = ("ConfigMap", *RAY_CLUSTERS)
"""Kinds whose texts must be known. Those of others are rarely more than names."""

_ENVIRONMENTS: dict[str, Path] = {
    **{kind: (*path, "runtimeEnvYAML") for kind, path in RAY_JOBS.items()},
    "RayService": ("spec", "serveConfigV2"),
}
"""Texts of KubeRay's kinds with the variables of Ray's jobs and applications."""

_VALUE = r"(\"[^\"]*\"|'[^']*'|[^\s\"'()\[\]`]+)"
_IN_FILES = re.compile(rf"^(?:export\s+)?([A-Z][A-Z0-9_]*)={_VALUE}$", re.MULTILINE)
"""Variables in a script or a file of variables, a line each."""


def _in_secret(owner: Object) -> Violations:
    # Argo CD keeps the addresses of repositories and clusters in Secrets, also of public ones.
    public = (*_PUBLIC, *(_ARGO_CD if owner.label(_ARGO_CDS_LABEL).is_set else ()))
    for key in ("data", "stringData") if owner.protected is None else ():
        for name, value in owner.root.at(key).entries():
            text = value.text or ""
            if name in public and not secret_in(text):
                continue
            if text and not is_placeholder(text):
                yield value.wrong("is in a file")


def _in_texts(node: Node, judged: set[Path], needed: bool) -> Violations:
    if node.path in judged:
        return
    try:
        values = [each for _, each in node.entries()] + list(node.items())
        kind = secret_in(node.text or "")
    except NotKnownYetError:
        if needed:
            raise
        return
    if kind:
        yield node.wrong(f"has {kind}")
    for each in values:
        yield from _in_texts(each, judged, needed)


def _named(owner: Object) -> Violations:
    """Variables and flags that are secrets by their names, where their values do not look like one."""
    for node, found in _variables_of(owner):
        for name in dict.fromkeys(name for name, value in found if is_secret_by_name(name, value)):
            yield node.wrong(f"{name!r} looks like a secret")
    for node, command in _commands_of(owner):
        yield from (node.wrong(f"{name!r} looks like a secret") for name in secrets_of_command(command))


def _variables_of(owner: Object) -> Iterator[tuple[Node, list[tuple[str, Any]]]]:
    """Texts with the variables and flags in them."""
    if owner.kind == "ConfigMap":
        for key, value in owner.root.at("data").entries():
            yield value, [(key, value.text), *_IN_FILES.findall(value.text or "")]
    if owner.kind in _ENVIRONMENTS:
        node = owner.root.at(*_ENVIRONMENTS[owner.kind])
        yield node, list(_env_vars(_parsed(node.text or "")))
    if owner.kind == CML_CLUSTER:
        for group in groups_of(owner):
            yield group.at("env"), [(name, value.text) for name, value in group.at("env").entries()]
        served = owner.root.at("spec", "serve")
        yield served, list(_env_vars(_parsed(served.text or "")))


def _commands_of(owner: Object) -> Iterator[tuple[Node, str]]:
    commands = [each.node.at(key) for each in containers(owner) for key in ("command", "args")]
    texts = [(node, " ".join(word.text or "" for word in node.items())) for node in commands]
    if owner.kind in RAY_JOBS:
        entrypoint = owner.root.at(*RAY_JOBS[owner.kind], "entrypoint")
        texts.append((entrypoint, entrypoint.text or ""))
    yield from texts


def _parsed(text: str) -> Any:
    try:
        return [each.value for each in documents(text)]
    except DocumentError:
        return None


def _env_vars(value: Any) -> Iterator[tuple[str, Any]]:
    """The variables in all `env_vars` of a runtime environment or a Serve config."""
    for key, each in value.items() if isinstance(value, dict) else ():
        yield from each.items() if key == "env_vars" and isinstance(each, dict) else _env_vars(each)
    for each in value if isinstance(value, list) else ():
        yield from _env_vars(each)
