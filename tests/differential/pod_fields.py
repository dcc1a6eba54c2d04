"""Values for the fields of pods and containers: of the structure that a CRD's schema requires, right and wrong ones."""

from typing import Any

from hypothesis import strategies as st

Strategy = st.SearchStrategy[Any]

NAMES = st.sampled_from(["ray-head", "side", "data", "cache", "a" * 63, "a" * 64, "Data", "a.b", "-a", "a_b", ""])
LABELS = st.sampled_from(
    ["app", "ray.io/cluster", "example.com/team-a", "a b", "/x", "x/", "A_b.c", "-x", "", "k" * 64]
)
VALUES = st.sampled_from(["", "blue", "A_b.c", "-x", "a b", "v" * 63, "v" * 64])
PATHS = st.sampled_from(["/data", "/", "data", "../x", "a/../b", "..x", "..", "a/b", "/a/../b", "", "./a"])
TEXTS = st.sampled_from(["", "a", "A_B", "a=b", "x y", "é", "\t", "1A", "a.b-c"])
NUMBERS = st.sampled_from([-1, 0, 1, 2, 5, 30, 100, 101, 256, 400, 511, 512, 3607, 599, 600, 65535, 65536, 2**31 - 1])
QUANTITIES = st.sampled_from(["0", "1", "-1", "500m", "0.1m", "64Gi", "2Mi", "3Mi", "1.5", 2, 1, "1e3", "1k", "2.0"])
RESOURCES = st.sampled_from(
    [
        "cpu",
        "memory",
        "ephemeral-storage",
        "nvidia.com/gpu",
        "hugepages-2Mi",
        "hugepages-x",
        "gpu",
        "storage",
        "pods",
        "kubernetes.io/x",
        "requests.nvidia.com/gpu",
        "a b/c",
        "nvidia.com/",
        "limits.cpu",
        "example.com/fpga",
    ]
)
BOOLEANS = st.booleans()


def some(**fields: Strategy) -> Strategy:
    """A mapping with any of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


def these(required: dict[str, Strategy], **fields: Strategy) -> Strategy:
    return st.fixed_dictionaries(required, optional=fields)


def few(item: Strategy, most: int = 2) -> Strategy:
    return st.lists(item, max_size=most)


SELECTOR = some(
    matchLabels=st.dictionaries(LABELS, VALUES, max_size=1),
    matchExpressions=few(
        these(
            {"key": LABELS, "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", ""])},
            values=few(VALUES),
        ),
        1,
    ),
)

FILES = few(these({"key": TEXTS, "path": PATHS}, mode=NUMBERS))
FIELD = these(
    {
        "fieldPath": st.sampled_from(
            [
                "metadata.name",
                "metadata.labels",
                "metadata.labels['a']",
                "metadata.annotations['A b']",
                "status.podIP",
                "spec.host",
                "spec.nodeName",
                "status.phase",
                "metadata.uid",
                "spec['a']",
                "",
                "metadata.labels['']",
            ]
        )
    },
    apiVersion=st.sampled_from(["v1", "v2", ""]),
)
RESOURCE = these(
    {"resource": st.sampled_from(["limits.cpu", "requests.memory", "limits.hugepages-2Mi", "cpu", "", "limits.gpu"])},
    containerName=st.sampled_from(["", "ray-head", "other"]),
    divisor=st.sampled_from(["0", "1", "1m", "1Mi", "2", 1, "1k"]),
)
DOWNWARD = few(these({"path": PATHS}, fieldRef=FIELD, resourceFieldRef=RESOURCE, mode=NUMBERS))

SOURCES = {
    "emptyDir": some(sizeLimit=QUANTITIES, medium=st.sampled_from(["", "Memory"])),
    "hostPath": these({"path": PATHS}, type=st.sampled_from(["", "Directory", "Dir"])),
    "gitRepo": these({"repository": TEXTS}, directory=PATHS),
    "secret": some(secretName=NAMES, defaultMode=NUMBERS, items=FILES),
    "configMap": some(name=NAMES, defaultMode=NUMBERS, items=FILES),
    "persistentVolumeClaim": these({"claimName": NAMES}, readOnly=BOOLEANS),
    "nfs": these({"server": TEXTS, "path": PATHS}),
    "downwardAPI": some(items=DOWNWARD, defaultMode=NUMBERS),
    "csi": these(
        {"driver": st.sampled_from(["csi.example.com", "A.b", "", "a_b", "a" * 64])},
        nodePublishSecretRef=some(name=NAMES),
    ),
    "projected": some(
        defaultMode=NUMBERS,
        sources=few(
            some(
                secret=some(name=NAMES, items=FILES),
                configMap=some(name=NAMES, items=FILES),
                downwardAPI=some(items=DOWNWARD),
                serviceAccountToken=these({"path": PATHS}, expirationSeconds=NUMBERS),
            )
        ),
    ),
    "ephemeral": some(
        volumeClaimTemplate=these(
            {
                "spec": some(
                    accessModes=few(st.sampled_from(["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod", "RWX"])),
                    resources=some(requests=some(storage=QUANTITIES)),
                    storageClassName=NAMES,
                    volumeMode=st.sampled_from(["Block", "Filesystem", "x"]),
                    selector=SELECTOR,
                )
            },
            metadata=some(
                labels=st.dictionaries(LABELS, VALUES, max_size=1),
                annotations=st.dictionaries(LABELS, VALUES, max_size=1),
            ),
        )
    ),
}

VOLUMES = few(st.fixed_dictionaries({"name": NAMES}, optional=SOURCES), 2) | few(
    st.sampled_from(sorted(SOURCES)).flatmap(lambda kind: these({"name": NAMES, kind: SOURCES[kind]})), 3
)

PORT = NUMBERS | st.sampled_from(["http", "HTTP", "a--b", "1", "a" * 16, "-a", ""])
HANDLER = some(
    exec=some(command=few(TEXTS)),
    httpGet=these(
        {"port": PORT},
        path=PATHS,
        scheme=st.sampled_from(["HTTP", "HTTPS", "http", ""]),
        httpHeaders=few(these({"name": TEXTS, "value": TEXTS}), 1),
    ),
    tcpSocket=these({"port": PORT}),
)
PROBE = st.tuples(
    HANDLER,
    some(
        grpc=these({"port": NUMBERS}),
        initialDelaySeconds=NUMBERS,
        periodSeconds=NUMBERS,
        successThreshold=NUMBERS,
        failureThreshold=NUMBERS,
        terminationGracePeriodSeconds=NUMBERS,
    ),
).map(lambda parts: {**parts[0], **parts[1]})
HOOK = HANDLER | these({"sleep": these({"seconds": NUMBERS})})

PROFILE = these(
    {"type": st.sampled_from(["RuntimeDefault", "Localhost", "Unconfined", "x", ""])}, localhostProfile=PATHS
)
OF_ANY = {
    "runAsUser": NUMBERS,
    "runAsGroup": NUMBERS,
    "runAsNonRoot": BOOLEANS,
    "seccompProfile": PROFILE,
    "appArmorProfile": PROFILE,
    "seLinuxOptions": some(type=st.sampled_from(["container_t", "spc_t", ""]), user=TEXTS, role=TEXTS),
}
CAPABILITIES = few(st.sampled_from(["ALL", "NET_BIND_SERVICE", "SYS_ADMIN", "CAP_SYS_ADMIN", "CHOWN"]))
OF_CONTAINER = some(
    **OF_ANY,
    privileged=BOOLEANS,
    allowPrivilegeEscalation=BOOLEANS,
    readOnlyRootFilesystem=BOOLEANS,
    procMount=st.sampled_from(["Default", "Unmasked", "x"]),
    capabilities=some(add=CAPABILITIES, drop=CAPABILITIES),
)
OF_POD = some(
    **OF_ANY,
    fsGroup=NUMBERS,
    supplementalGroups=few(NUMBERS),
    fsGroupChangePolicy=st.sampled_from(["Always", "OnRootMismatch", "x"]),
    supplementalGroupsPolicy=st.sampled_from(["Merge", "Strict", "x"]),
    sysctls=few(
        these(
            {
                "name": st.sampled_from(
                    [
                        "kernel.shm_rmid_forced",
                        "net.core.somaxconn",
                        "net/ipv4/tcp_syncookies",
                        "A",
                        "",
                        "kernel.msgmax",
                    ]
                ),
                "value": TEXTS,
            }
        )
    ),
)

SOURCE_OF_ENV = some(
    fieldRef=FIELD,
    resourceFieldRef=RESOURCE,
    configMapKeyRef=these({"key": TEXTS}, name=NAMES),
    secretKeyRef=these({"key": TEXTS}, name=NAMES),
    fileKeyRef=these({"key": TEXTS, "path": PATHS, "volumeName": NAMES}),
)
MOUNT = these(
    {"name": NAMES, "mountPath": PATHS},
    subPath=PATHS,
    subPathExpr=PATHS,
    readOnly=BOOLEANS,
    mountPropagation=st.sampled_from(["None", "Bidirectional", "HostToContainer", "x"]),
    recursiveReadOnly=st.sampled_from(["Disabled", "Enabled", "IfPossible", "x"]),
)
CONTAINER = {
    "env": few(these({"name": TEXTS}, value=TEXTS, valueFrom=SOURCE_OF_ENV)),
    "envFrom": few(some(prefix=TEXTS, configMapRef=some(name=NAMES), secretRef=some(name=NAMES)), 1),
    "ports": few(
        these(
            {"containerPort": NUMBERS},
            name=st.sampled_from(["http", "HTTP", "a--b", "1", ""]),
            hostPort=st.sampled_from([0, 80, 65536, 1]),
            protocol=st.sampled_from(["TCP", "UDP", "tcp", ""]),
        )
    ),
    "resources": some(
        limits=st.dictionaries(RESOURCES, QUANTITIES, max_size=2),
        requests=st.dictionaries(RESOURCES, QUANTITIES, max_size=2),
        claims=few(these({"name": NAMES}, request=NAMES)),
    ),
    "volumeMounts": few(MOUNT),
    "volumeDevices": few(these({"name": NAMES, "devicePath": PATHS}), 1),
    "livenessProbe": PROBE,
    "readinessProbe": PROBE,
    "startupProbe": PROBE,
    "lifecycle": some(postStart=HOOK, preStop=HOOK),
    "imagePullPolicy": st.sampled_from(["Always", "Sometimes", ""]),
    "terminationMessagePolicy": st.sampled_from(["File", "x", ""]),
    "restartPolicy": st.sampled_from(["Always", "Never", "OnFailure", "x"]),
    "restartPolicyRules": few(
        these(
            {"action": st.sampled_from(["Restart", "RestartAllContainers", "x"])},
            exitCodes=these(
                {"operator": st.sampled_from(["In", "NotIn", "x"])}, values=few(st.sampled_from([0, 1, 255]))
            ),
        )
    )
    | st.just([{"action": "Restart", "exitCodes": {"operator": "In"}}] * 21),
    "resizePolicy": few(
        these(
            {
                "resourceName": st.sampled_from(["cpu", "memory", "x"]),
                "restartPolicy": st.sampled_from(["NotRequired", "RestartContainer", "x"]),
            }
        )
    ),
    "securityContext": OF_CONTAINER,
}
