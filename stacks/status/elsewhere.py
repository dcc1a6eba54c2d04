"""The dashboards of Ray clusters that KubeRay does not run: on Cloudera ML, and external clusters. Pure functions."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.problems import in_one_line

from .dashboard import ASKS
from .kubectl import kubectl

if TYPE_CHECKING:
    from components.cml.settings import CmlRayClusterSettings, CmlSettings
    from components.external_cluster.settings import ExternalClusterSettings

    from ..settings import StackSettings


def dashboard(settings: StackSettings, stack: str, word: str, context: str | None) -> Iterator[str]:
    """The URL of the cluster's dashboard, and the command that prints its token; nothing if there is no such cluster.
    `word`: its name; for an external cluster also `<namespace>/<name>`."""
    namespace, _, name = word.rpartition("/")
    for tenant in settings.tenants:
        if namespace in ("", tenant.namespace_name):
            for cluster in tenant.external_clusters:
                if cluster.name == name:
                    yield from _external(cluster, tenant.namespace_name, context)
    if settings.cml:
        for each in settings.cml.clusters:
            if each.name == word:
                yield from _on_cml(settings.cml, each, stack)


def _external(cluster: ExternalClusterSettings, namespace: str, context: str | None) -> Iterator[str]:
    yield f"{in_one_line(cluster.dashboard_address)}    # as pods in {namespace} reach it"
    if secret := cluster.token_secret:
        shown = f"go-template={{{{index .data {_quoted(secret.key)} | base64decode}}}}"
        yield ASKS
        yield kubectl(context, "get", "secret", "-n", namespace, secret.name, "-o", shown)


def _on_cml(settings: CmlSettings, cluster: CmlRayClusterSettings, stack: str) -> Iterator[str]:
    from components.cml.manifests import head_url, nodes

    yield head_url(nodes(settings, cluster, stack))
    yield ASKS
    tokens = f"pulumi stack output cmlTokens --stack {shlex.quote(stack)} --show-secrets --json"
    yield f"{tokens} | jq -r {shlex.quote(f'.[{_quoted(cluster.name)}]')}"


def _quoted(text: str) -> str:
    return f'"{text}"'
