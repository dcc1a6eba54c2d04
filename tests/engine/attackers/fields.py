"""The fields of kinds as the API server publishes them (OpenAPI v3), and generated values for any of them."""

import copy
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st
from kubernetes import client

Schema = Mapping[str, Any]

Body = dict[str, Any]

_DEEPEST = 7
"""Levels of values that are generated below a field."""

_UNWRITTEN = ("status", "managedFields", "apiVersion", "kind", "creationTimestamp", "selfLink")
"""Fields that the API server writes."""


class Fields:
    """The schemas of an API server."""

    def __init__(self, api: client.ApiClient) -> None:
        """Keeps the client."""
        self._api = api

    @functools.cache  # noqa: B019 # lives as long as the tests
    def _document(self, version: str) -> Any:
        root = f"/openapi/v3/{'apis' if '/' in version else 'api'}/{version}"
        answer = self._api.rest_client.pool_manager.request("GET", f"{self._api.configuration.host}{root}")
        return answer.json()["components"]["schemas"]

    def of(self, version: str, kind: str) -> Schema:
        """The schema of a kind."""
        group, _, number = version.rpartition("/")
        named = {"group": group, "kind": kind, "version": number}
        schemas = self._document(version).values()
        return next(each for each in schemas if named in each.get("x-kubernetes-group-version-kind", ()))

    def resolved(self, version: str, schema: Schema) -> Schema:
        """The schema that a reference is to."""
        for each in (schema, *schema.get("allOf", ())):
            if "$ref" in each:
                found: Schema = self._document(version)[each["$ref"].rpartition("/")[2]]
                return found
        return schema


Text = st.SearchStrategy[Any]

_NAMES = ["more", "training", "adhoc-more", "tokens", "default", "ray-run-history", "ray-deployer", "kuberay-operator"]
_HOSTS = ["10.0.0.1", "169.254.169.254", "training-head-svc.team-foreign.svc", "example.com", "*.example.com"]
_PREFIXED = ["example.com/never", "foregroundDeletion", "kubernetes.io/pvc-protection"]

_BY_FIELD: Mapping[str, Sequence[Any]] = {
    "namespace": ["team-foreign", "kube-system", "ray-system", "team-access"],
    "namespaces": ["team-foreign", "kube-system", "*"],
    "finalizers": _PREFIXED,
    "image": ["rayproject/ray:2.60.0", "example.com/mine:1"],
    "priorityClassName": ["system-cluster-critical", "system-node-critical", "ray-head", "ray-worker", "mine"],
    "schedulerName": ["volcano", "default-scheduler", "mine"],
    "nodeName": ["a100-0"],
    "topologyKey": ["kubernetes.io/hostname", "kubernetes.io/os"],
    "storageClassName": ["standard", "gold", ""],
    "volumeName": ["of-team-foreign"],
    "type": ["ExternalName", "LoadBalancer", "NodePort", "ClusterIP", "RuntimeDefault", "Unconfined", "Directory",
             "Recreate", "NewCluster"],
    "serviceType": ["ExternalName", "LoadBalancer", "NodePort", "ClusterIP"],
    "externalIPs": ["192.0.2.1"],
    "host": _HOSTS, "hosts": _HOSTS, "server": _HOSTS, "externalName": _HOSTS, "ip": ["10.0.0.1", "169.254.169.254"],
    "redisAddress": ["redis:6379"],
    "path": ["/etc", "/", "team-foreign", "health"],
    "mountPath": ["/more", "/etc", "/var/run"],
    "operator": ["Exists", "Equal", "In", "NotIn"],
    "effect": ["NoSchedule", "NoExecute", ""],
    "key": ["nvidia.com/gpu", "node-role.kubernetes.io/control-plane", "example.com/other", "", "a"],
    "driver": ["nfs.csi.k8s.io", "secrets-store.csi.k8s.io"],
    "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
    "workersToDelete": ["ray-run-history-0", "training-head-abcde", "adhoc-a100-1gpu-worker-abcde"],
    "submissionMode": ["HTTPMode", "InteractiveMode", "K8sJobMode", "SidecarMode"],
    "gatewayClassName": ["istio"],
    "managedBy": ["kueue.x-k8s.io/multikueue", "ray.io/kuberay-operator"],
    "entrypoint": ["python train.py", "true; id", "a" * 2**15 + "a"],
    "serveConfigV2": ["", "applications: []", "a" * 2**18 + "a"],
    "runtimeEnvYAML": ["pip: [evil]", "a" * 2**15 + "a"],
    "protocol": ["TCP", "UDP"],
    "pathType": ["Prefix"],
    "queue": ["default", "other"],
    "procMount": ["Unmasked", "Default"],
    "restartPolicy": ["Never", "Always", "OnFailure"],
    "schedule": ["@daily", "* * * * *"],
    "uid": ["00000000-0000-0000-0000-000000000000"],
    "unhealthyPodEvictionPolicy": ["AlwaysAllow", "IfHealthyBudget"],
    "ports": [80],
    "port": [8265, 80, "dashboard"],
    "add": ["SYS_ADMIN", "NET_ADMIN", "ALL", "NET_BIND_SERVICE"],
    "mode": ["token", "disabled"],
}  # fmt: skip
"""Values of fields that lead somewhere, and some with which the rest of an object is valid."""

_TEXTS = ["a", "mine", "Always", "IfNotPresent", "team-foreign", *_NAMES]

_KEYS: Mapping[str, Sequence[str]] = {
    "annotations": [
        "note", "prometheus.io/scrape", "external-dns.alpha.kubernetes.io/hostname", "cni.projectcalico.org/ipAddrs",
        "k8s.v1.cni.cncf.io/networks", "iam.amazonaws.com/role", "volume.beta.kubernetes.io/storage-class",
        "nginx.ingress.kubernetes.io/server-snippet", "cert-manager.io/cluster-issuer",
        "service.beta.kubernetes.io/aws-load-balancer-internal", "ray-platform/created-by", "ray.io/ippr-status",
        "scheduling.k8s.io/group-name", "ray.io/overwrite-container-cmd",
    ],
    "labels": [
        "mine", "ray.io/cluster", "ray.io/node-type", "ray.io/priority-class-name", "kueue.x-k8s.io/priority-class",
        "app.kubernetes.io/name", "ray-platform/job-template", "ray-platform/job-size",
        "volcano.sh/queue-name",
    ],
    "resources": ["cpu", "memory", "nvidia.com/gpu", "ephemeral-storage"],
    "clusterSelector": ["ray.io/cluster"],
}  # fmt: skip

_NUMBERS = [0, 1, 2, 100, 8000, 30080, 65535, 100_000, 2**31 - 1]

_QUANTITIES = ["1", "2Gi", "100m", "1Gi", 1]


def _like(name: str) -> str:
    return "resources" if name in ("limits", "requests", "overhead", "minResources") else name


def _text(name: str, schema: Schema) -> Text:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    known = _BY_FIELD.get(name, _TEXTS)
    return st.sampled_from([*known, *known, *_NAMES])


def _is_quantity(schema: Schema) -> bool:
    return "x-kubernetes-int-or-string" in schema or {"type": "number"} in schema.get("oneOf", ())


class Mutations:
    """Draws bodies of a kind with values in a few of its fields."""

    def __init__(self, fields: Fields, version: str, kind: str) -> None:
        """Reads the kind's schema."""
        self._fields = fields
        self._version = version
        self._root = fields.of(version, kind)
        self._weights: dict[int, float] = {}

    def drawn(self, draw: st.DrawFn, body: Body, most: int = 3) -> Body:
        """A copy of the body in which one to `most` fields have other values."""
        made = copy.deepcopy(body)
        # One alone may be refused for another.
        for _ in range(draw(st.sampled_from([1, 1, 1, *range(1, most + 1)]))):
            self._change(draw, made, self._root, "")
        return made

    def _schema(self, schema: Schema) -> Schema:
        return self._fields.resolved(self._version, schema)

    def _entry(self, schema: Schema) -> Schema:
        """The schema of an object, or of a list's items."""
        known = self._schema(schema)
        return self._schema(known["items"]) if known.get("type") == "array" else known

    def _properties(self, schema: Schema) -> Mapping[str, Schema]:
        found = self._schema(schema).get("properties", {})
        return {name: each for name, each in found.items() if name not in _UNWRITTEN}

    def _weight(self, schema: Schema, depth: int = 0) -> float:
        """How often a field is chosen: more often the more there is below it, but not in proportion."""
        known = self._entry(schema)
        if depth > _DEEPEST:
            return 1
        if id(known) not in self._weights:
            self._weights[id(known)] = 1
            below = sum(self._weight(each, depth + 1) for each in self._properties(known).values())
            self._weights[id(known)] = 1 + below**0.7
        return self._weights[id(known)]

    def _chosen(self, draw: st.DrawFn, properties: Mapping[str, Schema]) -> str:
        names = list(properties)
        weights = [60 if name == "metadata" else max(1, round(4 * self._weight(properties[name]))) for name in names]
        at = draw(st.integers(0, sum(weights) - 1))
        for name, weight in zip(names, weights, strict=True):
            at -= weight
            if at < 0:
                return name
        raise AssertionError("weights add up")

    def _change(self, draw: st.DrawFn, body: Body, schema: Schema, at: str) -> None:
        properties = self._properties(schema)
        name = self._chosen(draw, properties)
        known = self._schema(properties[name])
        of_items = self._schema(known["items"]) if known.get("type") == "array" else None
        inner = of_items or known
        if not self._properties(inner) or not draw(st.integers(0, 4)):
            body[name] = self._value(draw, name, known, 0)
            return
        if of_items is None:
            if not isinstance(body.get(name), dict):
                body[name] = {}
            self._change(draw, body[name], inner, f"{at}.{name}")
            return
        items = body.setdefault(name, [])
        if not isinstance(items, list):
            return
        if not items or draw(st.booleans()):
            items.append(self._value(draw, name, inner, 0))
        chosen = draw(st.sampled_from(items))
        if isinstance(chosen, dict):
            self._change(draw, chosen, inner, f"{at}.{name}")

    def _value(self, draw: st.DrawFn, name: str, schema: Schema, depth: int) -> Any:
        known = self._schema(schema)
        properties = self._properties(known)
        if _is_quantity(known):
            return draw(st.sampled_from(_QUANTITIES if "port" not in name.lower() else [80, 8265, "dashboard"]))
        kind = known.get("type")
        if properties:
            return self._object(draw, known, properties, depth)
        if kind == "array":
            more = draw(st.integers(1, 2))
            return [self._value(draw, name, known["items"], depth + 1) for _ in range(more)]
        if isinstance(known.get("additionalProperties"), Mapping):
            keys = st.sampled_from(_KEYS.get(_like(name), ["a", *_KEYS["labels"]]))
            made = draw(st.lists(keys, min_size=1, max_size=2))
            return {key: self._value(draw, key, known["additionalProperties"], depth + 1) for key in made}
        if kind == "boolean":
            return draw(st.booleans())
        if kind in ("integer", "number"):
            return draw(st.sampled_from([*_NUMBERS, *(each for each in _BY_FIELD.get(name, ()) if each == 80)]))
        if kind == "string":
            return draw(_text(name, known))
        return {}

    def _object(self, draw: st.DrawFn, schema: Schema, properties: Mapping[str, Schema], depth: int) -> Body:
        made: Body = {}
        if {"image", "securityContext", "volumeMounts", "name"} <= set(
            properties
        ) and "upscalingMode" not in properties:
            made = {"name": "more", "image": "rayproject/ray:2.60.0", "securityContext": copy.deepcopy(SECURE)}
        wanted = [name for name in schema.get("required", ()) if name in properties and name not in made]
        if depth < _DEEPEST:
            wanted += [self._chosen(draw, properties) for _ in range(draw(st.integers(0 if wanted else 1, 2)))]
        for name in wanted:
            made[name] = self._value(draw, name, properties[name], depth + 1)
        return made


SECURE = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What Pod Security `restricted` asks of a container."""
