"""Lines of a RayCluster, RayJob or RayService in the stack's own log store, also of pods that are gone. They are read
with the rights of the account that runs the command."""

import json
import re
from collections.abc import Iterator

from components.cluster import Cluster, ForbiddenError
from components.logs.store import QUERY, service_of
from components.workloads import path_of
from core.suggestions import names_hint
from stacks.commands.status.targets import HEAD, NoSuchTargetError
from stacks.objects.logs import logs_of
from stacks.settings import StackSettings, TenantSettings

MOST = 1000
"""Lines that are shown without `--tail`."""

_PRINTED = r"^(worker-|job-driver-)"
"""Files with what jobs, tasks and actors print."""

_OF_AN_OWNER = r"-(raycluster-)?[a-z0-9]{5}"
"""What KubeRay adds to the name of a RayJob or RayService for its RayCluster (ray-operator/controllers/ray/utils:
GenerateRayClusterName)."""


def stored(
    cluster: Cluster, stack: StackSettings, word: str, *, pod: str | None, file: str | None, most: int
) -> Iterator[str]:
    """The last lines of that name, or `<namespace>/<name>`, oldest first: `[pod/file] line`.

    `pod`: `head`, or a pod's name; None for all. `file`: the name of a file, with `*` for any text; None for what jobs
    print. `most`: the number of lines. Raises NoSuchTargetError, ForbiddenError if this account may read no tenant's
    logs, and ClusterUnreachableError.
    """
    namespace, _, name = word.rpartition("/")
    tenants = [each for each in stack.tenants if logs_of(stack, each) and namespace in ("", each.namespace_name)]
    if not tenants:
        known = [each.namespace_name for each in stack.tenants if logs_of(stack, each)]
        raise NoSuchTargetError(f"the log store has no namespace {namespace!r}: {names_hint(namespace, known)}")
    refused: list[ForbiddenError] = []
    for tenant in tenants if most else ():  # VictoriaLogs takes a limit of 0 for none
        try:
            yield from _lines(cluster, stack, tenant, _query(tenant, name, pod, file, most))
        except ForbiddenError as error:
            refused.append(error)
    if refused and len(refused) == len(tenants):
        raise refused[0]


def _lines(cluster: Cluster, stack: StackSettings, tenant: TenantSettings, query: str) -> Iterator[str]:
    own = stack.logs.own_namespace if stack.logs else None
    path = f"{path_of(own or '', service_of(tenant.namespace_name))}{QUERY}"
    answer = b"".join(cluster.stream(path, query={"query": query}))
    for record in map(json.loads, reversed(answer.splitlines())):
        yield f"[{record.get('k8s.pod.name')}/{record.get('log.file.name')}] {record.get('_msg', '')}"


def _query(tenant: TenantSettings, name: str, pod: str | None, file: str | None, most: int) -> str:
    """In LogsQL (docs.victoriametrics.com/victorialogs/logsql)."""
    of_its_own = [*(each.name for each in tenant.clusters), *tenant.cluster_names]
    owned = "" if name in of_its_own else f"({_OF_AN_OWNER})?"
    filters = [
        f'"ray.cluster":~{json.dumps(f"^{re.escape(name)}{owned}$")}',
        f'"log.file.name":~{json.dumps(_PRINTED if file is None else _pattern(file))}',
    ]
    if pod == HEAD:
        filters.append('"ray.node_type":="head"')
    elif pod:
        filters.append(f'"k8s.pod.name":={json.dumps(pod)}')
    return f"{' '.join(filters)} | sort by (_time desc) limit {most}"


def _pattern(file: str) -> str:
    return f"^{'.*'.join(map(re.escape, file.split('*')))}$"
