"""Containers and init containers (validation.go: validateContainers, validateInitContainers)."""

from collections.abc import Collection, Mapping

from core.body import Body
from core.problems import Path
from kuberay.pod_template.findings import (
    absent,
    conflict,
    dns_label,
    env_name,
    items,
    missing,
    no_steps_back,
    one_of,
    port_name,
    relative,
    repeated,
    required,
    within,
    wrong,
)
from kuberay.pod_template.handlers import PROBES, lifecycle, probes
from kuberay.pod_template.references import value_from
from kuberay.pod_template.resources import resources
from kuberay.pod_template.security import of_container
from kuberay.pod_template.volumes import PULL_POLICIES
from kuberay.rules import Found

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_MOST_RESTART_RULES, _MOST_EXIT_CODES = 20, 255
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")


def containers(spec: Body, path: Path) -> Found:
    """All containers of a pod."""
    volumes = {each.get("name", ""): each for each in spec.get("volumes") or ()}
    claims = {each["name"] for each in spec.get("resourceClaims") or () if each.get("name")}
    names: set[str] = set()
    if not spec.get("containers"):
        yield missing((*path, "containers"), "add a container")
    ports: set[tuple[str, str, int]] = set()
    for kind in ("containers", "initContainers"):
        for at, container in items(spec, path, kind):
            yield from _container(container, at, spec, volumes, claims)
            name = container.get("name", "")
            if name in names:
                yield repeated((*at, "name"), name, "the name")
            names.add(name)
            initial = kind == "initContainers"
            yield from _host_ports(container, at, spec, set() if initial else ports)
            yield from _of_role(container, at, spec, initial)


def _of_role(container: Body, path: Path, spec: Body, initial: bool) -> Found:
    """What only some containers may have: an init container that stays, as a sidecar, may have all."""
    grace, policy = spec.get("terminationGracePeriodSeconds", 30), container.get("restartPolicy")
    yield from _restarts(container, path, initial)
    if initial and policy != "Always":
        yield from _restarts_at_resizing(container, path)
        for key in ("lifecycle", *PROBES):
            if key in container:
                message = "an init container has none unless its restartPolicy is Always: remove it"
                yield conflict((*path, key), None, message)
    else:
        yield from lifecycle(container, path, grace)
        yield from probes(container, path, grace)


def _restarts(container: Body, path: Path, initial: bool) -> Found:
    """validateContainerRestartPolicy, validateInitContainerRestartPolicy. Kubernetes 1.34 ignores the rules (gate
    ContainerRestartRules). The action RestartAllContainers and rules of sidecars are for 1.36, and refused by 1.35."""
    yield from one_of(container, path, "restartPolicy", ("Always", "Never", "OnFailure"), empty=False)
    rules, policy = container.get("restartPolicyRules") or (), container.get("restartPolicy")
    if rules and policy is None:
        yield missing((*path, "restartPolicy"), "restartPolicyRules need it")
    if rules and policy == "Always" and initial:
        message = "Kubernetes before 1.36 has none for init containers that stay: remove them"
        yield conflict((*path, "restartPolicyRules"), None, message)
    if len(rules) > _MOST_RESTART_RULES:
        yield wrong((*path, "restartPolicyRules"), len(rules), f"give at most {_MOST_RESTART_RULES}")
    for at, rule in items(container, path, "restartPolicyRules"):
        if rule.get("action") != "Restart":
            yield wrong((*at, "action"), rule.get("action"), "use Restart, the only one before Kubernetes 1.36")
        if (codes := rule.get("exitCodes")) is None:
            yield missing((*at, "exitCodes"))
            continue
        if codes.get("operator") not in ("In", "NotIn"):
            yield wrong((*at, "exitCodes", "operator"), codes.get("operator"), "use In or NotIn")
        if len(codes.get("values") or ()) > _MOST_EXIT_CODES:
            yield wrong((*at, "exitCodes", "values"), len(codes["values"]), f"give at most {_MOST_EXIT_CODES}")


def _restarts_at_resizing(container: Body, path: Path) -> Found:
    """The end of validateInitContainers; from Kubernetes 1.36 on."""
    for at, policy in items(container, path, "resizePolicy"):
        if policy.get("restartPolicy") == "RestartContainer":
            message = "an init container runs once, so it cannot restart: use NotRequired (Kubernetes 1.36 refuses it)"
            yield conflict((*at, "restartPolicy"), "RestartContainer", message)


def _container(container: Body, path: Path, spec: Body, volumes: Mapping[str, Body], claims: Collection[str]) -> Found:
    """validateContainerCommon."""
    if not container.get("name"):
        yield missing((*path, "name"))
    else:
        yield from dns_label(container["name"], (*path, "name"))
    image = container.get("image", "")
    if not image:
        yield missing((*path, "image"))
    elif image != image.strip():
        yield wrong((*path, "image"), image, "remove the blanks around it")
    yield from one_of(container, path, "terminationMessagePolicy", ("File", "FallbackToLogsOnError"))
    yield from one_of(container, path, "imagePullPolicy", PULL_POLICIES)
    yield from _ports(container, path, spec)
    yield from _environment(container, path, volumes)
    yield from _mounts(container, path, volumes)
    yield from _devices(container, path, volumes)
    yield from resources(container, path, claims)
    yield from _resizing(container, path, spec)
    yield from of_container(container, path, spec)


def _ports(container: Body, path: Path, spec: Body) -> Found:
    names = set()
    for at, port in items(container, path, "ports"):
        if name := port.get("name"):
            yield from port_name(name, (*at, "name"))
            if name in names:
                yield repeated((*at, "name"), name, "the name")
            names.add(name)
        if not port.get("containerPort"):
            yield missing((*at, "containerPort"))
        yield from within(port, at, "containerPort", 0, 65535)
        yield from within(port, at, "hostPort", 0, 65535)
        yield from one_of(port, at, "protocol", _PROTOCOLS)
        host = port.get("hostPort")
        if spec.get("hostNetwork") and host and host != port.get("containerPort") and path[-2] == "containers":
            yield conflict((*at, "hostPort"), host, "with hostNetwork it is the containerPort: remove it")


def _host_ports(container: Body, path: Path, spec: Body, taken: set[tuple[str, str, int]]) -> Found:
    """checkHostPortConflicts, after SetDefaultHostNetworkPorts: with hostNetwork the port of the node is the same."""
    for at, port in items(container, path, "ports"):
        number = port.get("hostPort") or (port.get("containerPort") if spec.get("hostNetwork") else None)
        if number:
            opened = (port.get("protocol") or "TCP", port.get("hostIP", ""), number)
            if opened in taken:
                yield repeated((*at, "hostPort"), number, "the port of the node")
            taken.add(opened)


def _environment(container: Body, path: Path, volumes: Mapping[str, Body]) -> Found:
    """ValidateEnv, ValidateEnvFrom."""
    for at, variable in items(container, path, "env"):
        yield from env_name(variable.get("name", ""), (*at, "name"))
        if "valueFrom" in variable:
            yield from value_from(variable, (*at, "valueFrom"))
            yield from _file_volume(variable["valueFrom"].get("fileKeyRef"), (*at, "valueFrom", "fileKeyRef"), volumes)
    for at, source in items(container, path, "envFrom"):
        if source.get("prefix"):
            yield from env_name(source["prefix"], (*at, "prefix"))
        present = [key for key in ("configMapRef", "secretRef") if key in source]
        if not present:
            yield missing((*at, "secretRef"), "add it, or configMapRef")
        for second in present[1:]:
            yield conflict((*at, second), None, f"excludes {present[0]}: make each an item of envFrom")
        for key in present:
            yield from required(source[key], (*at, key), "name")
            # A prefix such as `some-` is a valid name here (validation.go: ValidateSecretName with prefix).
            if (name := source[key].get("name", "")) and not _is_name_or_prefix(name):
                yield wrong((*at, key, "name"), name, "use lower-case letters, digits, hyphens and dots")


def _file_volume(source: Body | None, path: Path, volumes: Mapping[str, Body]) -> Found:
    """validateFileKeyRefVolumes. Kubernetes 1.34 ignores the field (gate EnvFiles)."""
    name = source.get("volumeName", "") if source is not None else None
    if name is None:
        return
    if name not in volumes:
        yield absent((*path, "volumeName"), name, "volume", volumes)
    elif volumes[name].keys() - {"name", "emptyDir"}:
        yield conflict((*path, "volumeName"), name, "is not an emptyDir volume: name one")


def _is_name_or_prefix(name: str) -> bool:
    from kuberay.formats import is_dns_subdomain

    return is_dns_subdomain(f"{name[:-1]}a" if name.endswith("-") else name)


def _mounts(container: Body, path: Path, volumes: Mapping[str, Body]) -> Found:
    """ValidateVolumeMounts."""
    devices = {each.get("name"): each.get("devicePath") for each in container.get("volumeDevices") or ()}
    privileged = (container.get("securityContext") or {}).get("privileged")
    places = set()
    for at, mount in items(container, path, "volumeMounts"):
        name, place = mount.get("name", ""), mount.get("mountPath", "")
        if name not in volumes:
            yield absent((*at, "name"), name, "volume", volumes)
        yield from required(mount, at, "mountPath")
        if place in places:
            yield repeated((*at, "mountPath"), place, "the path")
        places.add(place)
        if name in devices or place in devices.values():
            yield conflict((*at, "name"), name, "is in volumeDevices as well: remove one of them")
        for key in ("subPath", "subPathExpr"):
            yield from relative(mount.get(key, ""), (*at, key))
        if mount.get("subPath") and mount.get("subPathExpr"):
            yield conflict((*at, "subPathExpr"), mount["subPathExpr"], "excludes subPath: keep one of them")
        yield from one_of(mount, at, "mountPropagation", _PROPAGATIONS, empty=False)
        if mount.get("mountPropagation") == "Bidirectional" and not privileged:
            message = "Bidirectional is only for privileged containers: remove it"
            yield conflict((*at, "mountPropagation"), "Bidirectional", message)
        yield from _read_only(mount, at)


def _read_only(mount: Body, path: Path) -> Found:
    """validateMountRecursiveReadOnly."""
    yield from one_of(mount, path, "recursiveReadOnly", ("Disabled", "IfPossible", "Enabled"), empty=False)
    value = mount.get("recursiveReadOnly")
    if value in ("IfPossible", "Enabled"):
        if not mount.get("readOnly"):
            yield conflict((*path, "recursiveReadOnly"), value, "needs readOnly: true: add it")
        if mount.get("mountPropagation", "None") != "None":
            yield conflict((*path, "recursiveReadOnly"), value, "excludes mountPropagation: remove one of them")


def _devices(container: Body, path: Path, volumes: Mapping[str, Body]) -> Found:
    """ValidateVolumeDevices."""
    names, places = set(), set()
    for at, device in items(container, path, "volumeDevices"):
        name, place = device.get("name", ""), device.get("devicePath", "")
        if name not in volumes:
            yield absent((*at, "name"), name, "volume", volumes)
        elif not volumes[name].keys() & {"persistentVolumeClaim", "ephemeral"}:
            yield conflict((*at, "name"), name, "is not a persistentVolumeClaim or ephemeral volume: mount it instead")
        if name in names:
            yield repeated((*at, "name"), name, "the volume")
        yield from required(device, at, "devicePath")
        if place in places:
            yield repeated((*at, "devicePath"), place, "the path")
        yield from no_steps_back(place, (*at, "devicePath"))
        names.add(name)
        places.add(place)


def _resizing(container: Body, path: Path, spec: Body) -> Found:
    """validateResizePolicy."""
    seen = set()
    for at, policy in items(container, path, "resizePolicy"):
        name = policy.get("resourceName", "")
        if name in seen:
            yield repeated((*at, "resourceName"), name, "the resource")
        seen.add(name)
        yield from one_of(policy, at, "resourceName", ("cpu", "memory"), empty=False)
        yield from one_of(policy, at, "restartPolicy", ("NotRequired", "RestartContainer"), empty=False)
        if spec.get("restartPolicy") == "Never" and policy.get("restartPolicy") == "RestartContainer":
            message = "the pod's restartPolicy is Never: use NotRequired"
            yield conflict((*at, "restartPolicy"), "RestartContainer", message)
