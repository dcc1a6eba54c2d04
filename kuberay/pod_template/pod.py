"""A pod template as a whole (validation.go: ValidatePodCreate)."""

import ipaddress
from dataclasses import replace

from core.body import Body
from core.problems import Path
from kuberay import formats
from kuberay.pod_template.containers import containers
from kuberay.pod_template.findings import (
    conflict,
    dns_label,
    dns_subdomain,
    items,
    label_name,
    labels,
    missing,
    one_of,
    repeated,
    within,
    wrong,
)
from kuberay.pod_template.placement import placement
from kuberay.pod_template.resources import resources
from kuberay.pod_template.security import of_pod
from kuberay.pod_template.volumes import volumes
from kuberay.rules import Found

_DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_MOST_NAMESERVERS, _MOST_SEARCHES, _LONGEST_SEARCHES = 3, 32, 2048
_LONGEST_HOSTNAME = 64
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def problems_of_template(template: Body, path: Path) -> Found:
    """Why an API server refuses the pods of a template; paths begin with `path`, that of the template.

    The template has the structure that the CRD's schema requires.
    """
    metadata, spec, at = template.get("metadata") or {}, template.get("spec") or {}, (*path, "spec")
    yield from _metadata(metadata, (*path, "metadata"))
    yield from volumes(spec, at)
    yield from containers(spec, at)
    yield from placement(spec, at)
    yield from of_pod(spec, at)
    yield from _resource_claims(spec, at)
    yield from _names(spec, at)
    yield from _dns(spec, at)
    yield from _limits(spec, at)
    if spec.get("ephemeralContainers"):
        yield conflict((*at, "ephemeralContainers"), None, "a new pod has none: remove them")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield conflict((*at, "nodeName"), spec["nodeName"], "excludes schedulingGates: remove one of them")


def _metadata(metadata: Body, path: Path) -> Found:
    yield from labels(metadata.get("labels") or {}, (*path, "labels"))
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        yield from label_name(key.lower(), (*path, "annotations", key))
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not _is_int32(cost):
        yield wrong((*path, "annotations", _DELETION_COST), cost, "give a whole number of 32 bits")


def _is_int32(text: str) -> bool:
    """helper.GetDeletionCostFromPodAnnotations."""
    number = formats.integer(text)
    canonical = text.lstrip("-")
    return (
        number is not None
        and abs(number) < 2**31
        and not text.startswith("+")
        and (canonical == "0" or not canonical.startswith("0"))
    )


def _resource_claims(spec: Body, path: Path) -> Found:
    """validatePodResourceClaims."""
    names = set()
    for at, claim in items(spec, path, "resourceClaims"):
        name = claim.get("name", "")
        if not name:
            yield missing((*at, "name"))
        elif name in names:
            yield repeated((*at, "name"), name, "the name")
        else:
            yield from dns_label(name, (*at, "name"))
        names.add(name)
        sources = [key for key in ("resourceClaimName", "resourceClaimTemplateName") if key in claim]
        if not sources:
            yield missing((*at, "resourceClaimName"), "add it, or resourceClaimTemplateName")
        for second in sources[1:]:
            yield conflict((*at, second), claim[second], f"excludes {sources[0]}: keep one of them")
        for key in sources:
            yield from dns_subdomain(claim[key], (*at, key))


def _names(spec: Body, path: Path) -> Found:
    for key in ("serviceAccountName", "nodeName", "priorityClassName"):
        if spec.get(key):
            yield from dns_subdomain(spec[key], (*path, key))
    if (runtime := spec.get("runtimeClassName")) is not None:
        yield from dns_subdomain(runtime, (*path, "runtimeClassName"))
    for key in ("hostname", "subdomain"):
        if spec.get(key):
            yield from dns_label(spec[key], (*path, key))
    yield from _hostname_override(spec, (*path, "hostnameOverride"))
    for at, alias in items(spec, path, "hostAliases"):
        yield from _address(alias.get("ip", ""), (*at, "ip"))
        for index, name in enumerate(alias.get("hostnames") or ()):
            yield from dns_subdomain(name, (*at, "hostnames", index))
    for at, gate in items(spec, path, "readinessGates"):
        yield from label_name(gate.get("conditionType", ""), (*at, "conditionType"))
    gates = set()
    for at, gate in items(spec, path, "schedulingGates"):
        name = gate.get("name", "")
        yield from label_name(name, (*at, "name"))
        if name in gates:
            yield repeated((*at, "name"), name, "the gate")
        gates.add(name)


def _hostname_override(spec: Body, path: Path) -> Found:
    """validatePodHostName. Kubernetes 1.34 ignores the field (gate HostnameOverride)."""
    name = spec.get("hostnameOverride")
    if name is None:
        return
    for key in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(key):
            yield conflict(path, name, f"excludes {key}: remove one of them")
    if len(name) > _LONGEST_HOSTNAME:
        yield wrong(path, name, f"use at most {_LONGEST_HOSTNAME} characters")
    else:
        yield from dns_subdomain(name, path)


def _address(text: str, path: Path) -> Found:
    """IsValidIPForLegacyField. Kubernetes before 1.36 accepts leading zeros in IPv4, and IPv4 written as IPv6."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        yield wrong(path, text, "give an IP address, without leading zeros")
        return
    if address.version == 6 and address.ipv4_mapped:
        yield wrong(path, text, f"write {address.ipv4_mapped}")


def _dns(spec: Body, path: Path) -> Found:
    """validateDNSPolicy, validatePodDNSConfig."""
    yield from one_of(spec, path, "dnsPolicy", _DNS_POLICIES)
    config, at = spec.get("dnsConfig"), (*path, "dnsConfig")
    servers = (config or {}).get("nameservers") or []
    if spec.get("dnsPolicy") == "None" and not servers:
        yield missing((*at, "nameservers"), "dnsPolicy None needs one")
        return
    if config is None:
        return
    if len(servers) > _MOST_NAMESERVERS:
        yield wrong((*at, "nameservers"), servers, f"give at most {_MOST_NAMESERVERS}")
    for index, server in enumerate(servers):
        yield from _address(server, (*at, "nameservers", index))
    searches = config.get("searches") or []
    if len(searches) > _MOST_SEARCHES or len(" ".join(searches)) > _LONGEST_SEARCHES:
        yield wrong((*at, "searches"), searches, f"give at most {_MOST_SEARCHES}, of {_LONGEST_SEARCHES} characters")
    for index, search in enumerate(searches):
        # With underscores (ValidateDNS1123SubdomainWithUnderScore).
        if search != "." and not formats.is_dns_subdomain(search.removesuffix(".").replace("_", "a")):
            yield wrong((*at, "searches", index), search, "give a domain")
    for each, option in items(config, at, "options"):
        if not option.get("name"):
            yield missing((*each, "name"))


def _limits(spec: Body, path: Path) -> Found:
    """Fields with few allowed values, and numbers."""
    yield from one_of(spec, path, "restartPolicy", ("Always", "OnFailure", "Never"))
    yield from one_of(spec, path, "preemptionPolicy", ("PreemptLowerPriority", "Never"), empty=False)
    yield from within(spec, path, "activeDeadlineSeconds", 1, 2**31 - 1)
    overhead = spec.get("overhead")
    if overhead is not None:
        for found in resources({"resources": {"limits": overhead}}, ()):
            yield replace(found, path=(*path, "overhead", *found.path[2:]))
    system = spec.get("os")
    if system is not None:
        if not system.get("name"):
            yield missing((*path, "os", "name"))
        yield from one_of(system, (*path, "os"), "name", ("linux", "windows"))
