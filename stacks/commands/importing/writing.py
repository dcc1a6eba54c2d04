"""Writes a stack file of imported clusters, with a comment where a person has to decide. Their tenants have settings
under which the pods start as before the import.
"""

import ipaddress
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, get_args
from urllib.parse import urlsplit

import yaml
from pydantic import ValidationError

from components.job_template.settings import JobTemplateSettings
from components.ray_cluster.problems import strictest_level
from components.ray_cluster.rules import valid
from components.ray_cluster.settings import HeadSettings, RayClusterSettings, WorkerGroupSettings
from components.ray_job.settings import RayJobSettings
from components.ray_service.settings import RayServiceSettings
from core.pods import PodSecurityLevel
from core.problems import Path, Problems
from core.stack_file import PROJECT
from core.types import Settings
from core.values import inside
from core.yaml_writer import FastFileDumper
from kuberay import OperatorContext, validate
from kuberay.formats import is_dns_subdomain
from kuberay.validation import SHAPE
from stacks.checks.namespaces import DEFAULT
from stacks.commands.importing.manifests import faults
from stacks.launcher_files.reader import Answers, Imported, dns_name
from stacks.objects.ray_clusters import with_tenant_values
from stacks.settings import LONGEST_TENANT_NAME, TenantSettings

_NO_NAMESPACE = "imported"
"""Tenant of clusters whose file names no namespace."""

INTERNET: dict[str, Any] = {"internet": True}

_FROM_STRICT: tuple[PodSecurityLevel, ...] = get_args(PodSecurityLevel)

_REDIS_PORT = 6379


def tenants(imported: Iterable[Imported], namespace: str | None) -> list[dict[str, Any]]:
    """The clusters under a tenant for each namespace; `namespace` replaces the namespaces of the files.

    Pods may reach public addresses and their Redis, and have the strictest Pod Security that admits them.
    """
    found: dict[str, dict[str, Any]] = {}
    levels: dict[str, PodSecurityLevel] = {}
    egress: dict[str, list[dict[str, Any]]] = {}
    for each in imported:
        place = _place_of(each, namespace)
        name = dns_name(place, LONGEST_TENANT_NAME, "team")
        tenant: dict[str, Any] = {"name": name} if name == place else {"name": name, "namespace": place}
        found.setdefault(place, tenant).setdefault(each.key, []).append(each.entry)
        body = _rendered(each.cluster)
        levels[place] = max(levels.get(place, "restricted"), _level(body, each), key=_FROM_STRICT.index)
        allowed = egress.setdefault(place, [INTERNET])
        allowed += [target for target in _redis(body, place) if target not in allowed]
    for place, tenant in found.items():
        if place == DEFAULT:
            tenant["createNamespace"] = False
        elif levels[place] != "restricted":
            tenant["podSecurity"] = levels[place]
        tenant["network"] = {"egress": egress[place]}
        for key in ("clusters", "jobs", "jobTemplates", "services"):  # the last keys
            if key in tenant:
                tenant[key] = tenant.pop(key)
    return list(found.values())


def _place_of(imported: Imported, namespace: str | None) -> str:
    """The namespace of an imported cluster. `namespace`: replaces that of the file."""
    return namespace or imported.namespace or _NO_NAMESPACE


def needed(tenant: Mapping[str, Any]) -> list[str]:
    """The objects that pods of an imported tenant refer to: `Secret hf`, `PersistentVolumeClaim data`."""
    found = {each for cluster in _clusters(tenant) for each in _references(_rendered(cluster))}
    found.update(each for owner in _owners(tenant) for each in _references(owner.get("submitterPodTemplate")))
    return sorted(f"{kind} {name}" for kind, name in found - _IN_EACH_NAMESPACE)


def unknown_redis(tenant: Mapping[str, Any]) -> list[str]:
    """The addresses of Redis in an imported tenant whose targets are not known."""
    addresses = {each for cluster in _clusters(tenant) for each in _addresses(_rendered(cluster))}
    return sorted(each for each in addresses if _target(each, "") is None)


def _clusters(tenant: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All clusters of an imported tenant, also those of its jobs and services."""
    return [
        *tenant.get("clusters", ()),
        *({**each["cluster"], "name": each["name"]} for each in _owners(tenant)),
    ]


def _owners(tenant: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [each for key in ("jobs", "jobTemplates", "services") for each in tenant.get(key, ())]


def _rendered(cluster: dict[str, Any]) -> dict[str, Any]:
    """The RayCluster of an entry; empty if the entry is not valid, which is reported elsewhere."""
    try:
        return with_tenant_values(TenantSettings(name=_NO_NAMESPACE), valid(cluster))
    except (ValidationError, Problems):
        return {}


def _level(body: dict[str, Any], imported: Imported) -> PodSecurityLevel:
    """The strictest level that admits the pods: of the cluster, and the one that submits a job."""
    misshapen = not body or any(each.rule in SHAPE for each in validate(body, OperatorContext()))
    least = "restricted" if misshapen else strictest_level(body)
    if imported.owner is None:
        return least
    looser = _FROM_STRICT[_FROM_STRICT.index(least) :]
    return next((level for level in looser if not faults(imported, level)), least)


def _redis(body: Mapping[str, Any], namespace: str) -> Iterator[dict[str, Any]]:
    """The targets of a head that keeps its tables in a Redis, as far as they are known."""
    return (target for address in _addresses(body) if (target := _target(address, namespace)))


def _addresses(body: Mapping[str, Any]) -> list[str]:
    """The addresses of the head's Redis, in each form."""
    spec = body.get("spec") or {}
    addresses = [(spec.get("gcsFaultToleranceOptions") or {}).get("redisAddress")]
    for container in spec["headGroupSpec"]["template"]["spec"]["containers"] if spec else ():
        named = (each for each in container.get("env") or () if each.get("name") == "RAY_REDIS_ADDRESS")
        addresses += [each.get("value") for each in named]
    return [each for address in addresses if address for each in address.split(",")]


def _target(address: str, namespace: str) -> dict[str, Any] | None:
    """What pods have to reach for an address; None if that is not known, as with variables in it."""
    try:
        url = urlsplit(address if "://" in address else f"redis://{address}")
        host, port = (url.hostname or "").rstrip("."), url.port or _REDIS_PORT
    except ValueError:
        return None
    reached = _reached(host, namespace)
    return {**reached, "ports": [port]} if reached else None


def _reached(host: str, namespace: str) -> dict[str, Any] | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if not is_dns_subdomain(host):
            return None
        parts = host.split(".")
        if len(parts) == 1:
            return {"namespace": namespace}
        return {"namespace": parts[1]} if len(parts) == 2 or parts[2] == "svc" else INTERNET
    return {"cidr": f"{address}/{address.max_prefixlen}"}


_REFERENCES = {
    ("secretKeyRef", "name"): "Secret",
    ("secretRef", "name"): "Secret",
    ("secret", "secretName"): "Secret",
    ("secret", "name"): "Secret",  # of a projected volume
    ("nodePublishSecretRef", "name"): "Secret",
    ("imagePullSecrets", "name"): "Secret",
    ("azureFile", "secretName"): "Secret",
    ("configMapKeyRef", "name"): "ConfigMap",
    ("configMapRef", "name"): "ConfigMap",
    ("configMap", "name"): "ConfigMap",
    ("persistentVolumeClaim", "claimName"): "PersistentVolumeClaim",
}
_NAMES = {
    "serviceAccountName": "ServiceAccount",
    "priorityClassName": "PriorityClass",
    "runtimeClassName": "RuntimeClass",
}


_IN_EACH_NAMESPACE = {("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")}


def _references(value: Any) -> Iterator[tuple[str, str]]:
    for path, name in inside(value):
        keys = ["", "", *(step for step in path if isinstance(step, str))]
        kind = _REFERENCES.get((keys[-2], keys[-1])) or _NAMES.get(keys[-1])
        if kind and name and isinstance(name, str):
            yield kind, name


MODELINE = "# yaml-language-server: $schema=./stack-file.schema.json\n"

_WIDTH = 110


_NETWORK = "delete targets that pods do not need; add who may connect: dashboardFrom, clientFrom, serveFrom"

_NODES = "add ray-platform:nodes, your pools of nodes, or `ray-platform plan` knows no node"


def stack_file(imported: Iterable[Imported], answers: Answers) -> str:
    imported = [_in_order(each) for each in imported]
    made = tenants(imported, answers.namespace)
    settings = {**operator_of(answers), "tenants": made}
    text = MODELINE + dump({"config": {f"{PROJECT}:{key}": value for key, value in settings.items()}})
    return _commented(text, list(_decisions(imported, made, answers.namespace)))


def operator_of(answers: Answers) -> dict[str, Any]:
    """The setting of another release of KubeRay than the default."""
    return {"operator": {"version": answers.operator_version}} if answers.operator_version else {}


def _in_order(imported: Imported) -> Imported:
    """The cluster with its keys, and those of its head, worker groups and owner, in the order of the documentation."""
    whole = _sorted(imported.cluster, RayClusterSettings)
    if "head" in whole:
        whole["head"] = _sorted(whole["head"], HeadSettings)
    if "workerGroups" in whole:
        whole["workerGroups"] = [_sorted(each, WorkerGroupSettings) for each in whole["workerGroups"]]
    owner = imported.owner
    if owner:
        owner = replace(owner, settings=_sorted(owner.settings, _MODELS[owner.key]))
    return replace(imported, cluster=whole, owner=owner)


_MODELS: Mapping[str, type[Settings]] = {
    "jobs": RayJobSettings,
    "jobTemplates": JobTemplateSettings,
    "services": RayServiceSettings,
}


def _sorted(settings: dict[str, Any], model: type[Settings]) -> dict[str, Any]:
    return {
        str(field.alias): settings[str(field.alias)] for field in model.model_fields.values() if field.alias in settings
    }


def dump(value: Any) -> str:
    return yaml.dump(value, Dumper=FastFileDumper, sort_keys=False, width=_WIDTH, allow_unicode=True)


def _decisions(
    imported: list[Imported], made: list[dict[str, Any]], namespace: str | None
) -> Iterable[tuple[Path, str]]:
    """Places in the stack file, and what a person has to decide there."""
    root: Path = ("config", f"{PROJECT}:tenants")
    yield root, f"decide: {_NODES}"
    for tenant_index, tenant in enumerate(made):
        tenant_path: Path = (*root, tenant_index)
        if tenant["name"] == _NO_NAMESPACE and not namespace:
            yield (*tenant_path, "name"), "decide: the namespace of these clusters; the imported file sets none"
        yield (*tenant_path, "network"), f"decide: {_NETWORK}"
        if "podSecurity" in tenant:
            yield (*tenant_path, "podSecurity"), "decide: restricted, once the imported pods meet it (they do not yet)"
        places = Counter[str]()
        for each in imported:
            if _place_of(each, namespace) != tenant.get("namespace", tenant["name"]):
                continue
            inside: Path = (each.key, places[each.key], *(("cluster",) if each.owner else ()))
            places[each.key] += 1
            decisions = [note for note in each.notes if note.at is not None]
            yield from (
                ((*tenant_path, *inside, *(note.at or ())), f"decide: {note.instead} ({note.why})")
                for note in decisions
            )


def _commented(text: str, comments: list[tuple[Path, str]]) -> str:
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    lines = text.splitlines()
    above: dict[int, list[str]] = {}
    for path, comment in dict.fromkeys(comments):
        number = _line(root, path)
        indent = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
        above.setdefault(number, []).append(f"{indent}# {comment}")
    return "".join(f"{each}\n" for number, line in enumerate(lines) for each in (*above.get(number, ()), line))


def _line(root: yaml.Node | None, path: Path) -> int:
    """The line of a place, or of its nearest existing parent; a worker group is found by its name."""
    node, number = root, 0
    for step in path:
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == step), None)
        elif isinstance(node, yaml.SequenceNode):
            found = next(((each, each) for index, each in enumerate(node.value) if step in (index, _name(each))), None)
        else:
            found = None
        if found is None:
            break
        number, node = found[0].start_mark.line, found[1]
    return number


def _name(item: yaml.Node) -> str | None:
    """The `groupName` of a list's item."""
    keys = item.value if isinstance(item, yaml.MappingNode) else []
    return next((value.value for key, value in keys if key.value == "groupName"), None)
