"""Names, labels and annotations of objects: the rules of the API server and of KubeRay."""

from core.problems import Path

from .formats import is_dns_1035_label, is_dns_1123_label, is_dns_subdomain, is_label_value, is_qualified_name
from .rules import Body, Found, problem

LONGEST = {"RayCluster": 53, "RayJob": 47, "RayService": 47, "RayCronJob": 41}
"""Characters of a name (constant.go: MaxRayClusterNameLength and similar). Services have the name of the cluster with a
suffix, and the operator appends six characters to the names of clusters and jobs that it creates."""

_RULES = {
    "RayCluster": "ray-cluster-name",
    "RayJob": "ray-job-name",
    "RayService": "ray-service-name",
    "RayCronJob": "ray-cron-job-name",
}

_GENERATED = "00000"
_LONGEST_PREFIX = 58
"""The suffix that the API server adds to a generateName, and the length to which it truncates it (apiserver:
SimpleNameGenerator)."""

_ALL_ANNOTATIONS = 256 * 1024
"""Bytes of all annotations together (apimachinery: TotalAnnotationSizeLimitB)."""


_LONGEST_DERIVED = 50


def derived(name: str) -> str:
    """The name of a RayCluster's ServiceAccount, Role and token Secret (util.go: CheckName).

    It is the name of the cluster, of a long one its last 50 characters; the first becomes `r` unless it is a letter.
    """
    last = name[-_LONGEST_DERIVED:]
    return last if last[0].isalpha() else f"r{last[1:]}"


def check(body: Body) -> Found:
    """apimachinery: ValidateObjectMeta; KubeRay: ValidateRayClusterMetadata and similar."""
    metadata, kind = body["metadata"], body["kind"]
    yield from _name(metadata, kind)
    namespace = metadata.get("namespace", "")
    if namespace and not is_dns_1123_label(namespace):
        message = f"{namespace!r} is no name of a namespace: use at most 63 lower-case letters, digits and hyphens"
        yield problem("object-name", ("metadata", "namespace"), namespace, message)
    yield from labels(metadata.get("labels", {}), ("metadata", "labels"), "object-label")
    annotations = metadata.get("annotations", {})
    for key in annotations:
        if not is_qualified_name(key.lower()):
            message = (
                f"{key!r} is no key of an annotation: use letters, digits and -_. behind an optional DNS prefix and /"
            )
            yield problem("object-annotation", ("metadata", "annotations", key), annotations[key], message)
    size = sum(len(text.encode()) for item in annotations.items() for text in item)
    if size > _ALL_ANNOTATIONS:
        message = f"the annotations have {size} bytes together: shorten them to {_ALL_ANNOTATIONS}"
        yield problem("object-annotation", ("metadata", "annotations"), None, message)


def _name(metadata: Body, kind: str) -> Found:
    name, prefix, longest = metadata.get("name", ""), metadata.get("generateName") or "", LONGEST[kind]
    if name and prefix and not is_dns_subdomain(prefix[:-1] + prefix[-1].replace("-", "a")):
        message = f"{prefix!r} is no beginning of a name: use lower-case letters, digits and hyphens, or remove it"
        yield problem("object-name", ("metadata", "generateName"), prefix, message)
    if not name and prefix:
        name = prefix[:_LONGEST_PREFIX] + _GENERATED
    if not name:
        yield problem("required-field", ("metadata", "name"), None, "'name' is missing: add it")
    elif len(name) > longest or not is_dns_1035_label(name):
        message = (
            f"{name!r} is no name of a {kind}: use at most {longest} lower-case letters, digits and hyphens, "
            "a letter first and no hyphen last"
        )
        yield problem(_RULES[kind], ("metadata", "name"), name, message)


def labels(labels: Body, path: Path, rule: str) -> Found:
    """Label keys and values in Kubernetes' syntax (apimachinery: IsQualifiedName, IsValidLabelValue)."""
    for key, value in labels.items():
        if not is_qualified_name(key):
            message = f"{key!r} is no key of a label: use letters, digits and -_. behind an optional DNS prefix and /"
            yield problem(rule, (*path, key), value, message)
        if not is_label_value(value):
            message = (
                f"{value!r} is no value of a label: use at most 63 letters, digits and -_., none of these at an end"
            )
            yield problem(rule, (*path, key), value, message)
