"""Strategies for pod templates, with right and wrong values."""

from typing import Any

from hypothesis import strategies as st

from tests.differential.pod_fields import (
    BOOLEANS,
    CONTAINER,
    LABELS,
    NAMES,
    NUMBERS,
    OF_POD,
    QUANTITIES,
    RESOURCES,
    SELECTOR,
    TEXTS,
    VALUES,
    VOLUMES,
    Strategy,
    few,
    some,
    these,
)

IDENTITY: dict[str, Strategy] = {"name": NAMES, "image": st.sampled_from(["rayproject/ray:2.60.0", "", " x", "x "])}
"""Of a container."""

EXPRESSIONS = few(
    these(
        {"key": LABELS, "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "is"])},
        values=few(VALUES),
    )
)
TERM = some(matchExpressions=EXPRESSIONS, matchFields=EXPRESSIONS)
POD_TERM = these(
    {"topologyKey": LABELS},
    labelSelector=SELECTOR,
    namespaceSelector=SELECTOR,
    namespaces=few(NAMES),
    matchLabelKeys=few(LABELS),
    mismatchLabelKeys=few(LABELS),
)
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
POD_AFFINITY = some(
    **{REQUIRED: few(POD_TERM, 1), PREFERRED: few(these({"weight": NUMBERS, "podAffinityTerm": POD_TERM}), 1)}
)

POD = {
    "volumes": VOLUMES,
    "securityContext": OF_POD,
    "nodeSelector": st.dictionaries(LABELS, VALUES, max_size=2),
    "affinity": some(
        nodeAffinity=some(
            **{
                REQUIRED: these({"nodeSelectorTerms": few(TERM)}),
                PREFERRED: few(these({"weight": NUMBERS, "preference": TERM}), 1),
            }
        ),
        podAffinity=POD_AFFINITY,
        podAntiAffinity=POD_AFFINITY,
    ),
    "tolerations": few(
        some(
            key=LABELS,
            operator=st.sampled_from(["Equal", "Exists", "x", ""]),
            value=VALUES,
            effect=st.sampled_from(["NoSchedule", "NoExecute", "x", ""]),
            tolerationSeconds=NUMBERS,
        )
    ),
    "topologySpreadConstraints": few(
        these(
            {
                "maxSkew": NUMBERS,
                "topologyKey": LABELS,
                "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway", "x"]),
            },
            minDomains=NUMBERS,
            labelSelector=SELECTOR,
            nodeAffinityPolicy=st.sampled_from(["Honor", "Ignore", "x"]),
        )
    ),
    "hostNetwork": BOOLEANS,
    "hostPID": BOOLEANS,
    "hostIPC": BOOLEANS,
    "hostUsers": BOOLEANS,
    "shareProcessNamespace": BOOLEANS,
    "restartPolicy": st.sampled_from(["Never", "Always", "x", ""]),
    "dnsPolicy": st.sampled_from(["ClusterFirst", "None", "x", ""]),
    "dnsConfig": some(
        nameservers=few(
            st.sampled_from(["10.0.0.1", "::1", "a", "010.0.0.1", "1.2.3", "256.1.1.1", "::ffff:10.0.0.1"]), 4
        ),
        searches=few(st.sampled_from(["a.b", "a_b.c", ".", "A", "a.b.", ""])),
        options=few(some(name=TEXTS), 1),
    ),
    "serviceAccountName": NAMES,
    "nodeName": NAMES,
    "priorityClassName": NAMES,
    "runtimeClassName": NAMES,
    "hostname": NAMES,
    "subdomain": NAMES,
    "hostnameOverride": NAMES | st.just("a" * 63 + ".b"),
    "setHostnameAsFQDN": BOOLEANS,
    "preemptionPolicy": st.sampled_from(["Never", "PreemptLowerPriority", "x"]),
    "activeDeadlineSeconds": NUMBERS,
    "terminationGracePeriodSeconds": st.sampled_from([0, 10, 30]),
    "overhead": st.dictionaries(RESOURCES, QUANTITIES, max_size=1),
    "os": these({"name": st.sampled_from(["linux", "x", ""])}),
    "readinessGates": few(these({"conditionType": LABELS})),
    "schedulingGates": few(these({"name": LABELS})),
    "hostAliases": few(these({"ip": st.sampled_from(["10.0.0.1", "x", "::1", "10.0.0.01"])}, hostnames=few(NAMES)), 1),
    "resourceClaims": few(these({"name": NAMES}, resourceClaimName=NAMES, resourceClaimTemplateName=NAMES)),
}


METADATA: dict[str, Strategy] = {
    "labels": st.dictionaries(LABELS, VALUES, max_size=1),
    "annotations": st.dictionaries(LABELS | st.just("controller.kubernetes.io/pod-deletion-cost"), VALUES, max_size=1),
}


SECURE_POD = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
SECURE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""What `restricted` requires of a pod and of each container."""


@st.composite
def templates(draw: st.DrawFn, most: int, secure: bool = False) -> dict[str, Any]:
    """A valid template with at most so many drawn fields, in the pod and its containers together.

    `secure`: with what `restricted` requires, over which the drawn fields are written.
    """
    of_pod: dict[str, Any] = {"securityContext": SECURE_POD} if secure else {}
    of_container: dict[str, Any] = {"securityContext": SECURE} if secure else {}

    left = most

    def drawn(fields: dict[str, Strategy]) -> dict[str, Any]:
        nonlocal left
        chosen = draw(st.lists(st.sampled_from(sorted(fields)), max_size=left, unique=True)) if left else []
        left -= len(chosen)
        return {name: draw(fields[name]) for name in chosen}

    def container(name: str) -> dict[str, Any]:
        return {"name": name, "image": "rayproject/ray:2.60.0", **of_container, **drawn(IDENTITY | CONTAINER)}

    spec = {**of_pod, **drawn(POD), "containers": [container("ray-head")]}
    if draw(st.booleans()):
        spec["containers"].append(container("beside"))
    if draw(st.booleans()):
        spec["initContainers"] = [container("before")]
    metadata = drawn(METADATA)
    return {**({"metadata": metadata} if metadata else {}), "spec": spec}
