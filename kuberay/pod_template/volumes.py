"""Volumes (validation.go: ValidateVolumes)."""

from collections.abc import Callable, Mapping

from core.body import Body
from core.problems import Path
from core.quantities import amount
from kuberay.pod_template.findings import (
    conflict,
    dns_label,
    dns_subdomain,
    items,
    label_name,
    labels,
    local_file,
    missing,
    mode,
    no_steps_back,
    one_of,
    relative,
    repeated,
    required,
    selector,
    within,
    wrong,
)
from kuberay.pod_template.references import VOLUME_FIELDS, field_reference, resource_reference
from kuberay.rules import Found, problem

PULL_POLICIES = ("Always", "IfNotPresent", "Never")

_HOST_PATH_TYPES = ("", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice")
_ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
_LEAST_TOKEN_SECONDS = 600

_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "iscsi": ("targetPortal", "iqn"),
    "glusterfs": ("endpoints", "path"),
    "rbd": ("monitors", "image"),
    "cinder": ("volumeID",),
    "cephfs": ("monitors",),
    "flexVolume": ("driver",),
    "azureFile": ("secretName", "shareName"),
    "azureDisk": ("diskName", "diskURI"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "scaleIO": ("gateway", "system", "volumeName"),
    "quobyte": ("registry", "volume"),
    "persistentVolumeClaim": ("claimName",),
}
"""Fields of a source that must not be empty, of sources without other rules here."""


def volumes(spec: Body, path: Path) -> Found:
    """Names and sources. A volume without a source is an emptyDir."""
    names = set()
    for at, volume in items(spec, path, "volumes"):
        name = volume.get("name", "")
        if not name:
            yield missing((*at, "name"))
        else:
            yield from dns_label(name, (*at, "name"))
        if name in names:
            yield repeated((*at, "name"), name, "the name")
        names.add(name)
        given = {key: source for key, source in volume.items() if key != "name"}
        sources = [key for key, source in given.items() if source is not None]
        for second in sources[1:]:
            yield conflict(
                (*at, second),
                None,
                f"volume {name!r} has both {sources[0]} and {second}: keep one, or make two volumes",
            )
        if sources:
            yield from _source(volume[sources[0]], (*at, sources[0]))
        for key in (each for each in given if given[each] is None):
            message = "with nothing in it the volume is an emptyDir: give its fields, or remove it"
            yield problem("pod-value", (*at, key), None, message)


def _source(source: Body, path: Path) -> Found:
    kind = str(path[-1])
    yield from required(source, path, *_REQUIRED.get(kind, ()))
    if check := _CHECKS.get(kind):
        yield from check(source, path)


def _empty_dir(source: Body, path: Path) -> Found:
    limit = source.get("sizeLimit")
    if limit is not None and amount(str(limit)) < 0:
        yield wrong((*path, "sizeLimit"), limit, "give an amount of 0 or more")


def _host_path(source: Body, path: Path) -> Found:
    if not source.get("path"):
        yield missing((*path, "path"))
        return
    yield from no_steps_back(source["path"], (*path, "path"))
    yield from one_of(source, path, "type", _HOST_PATH_TYPES)


def _git_repo(source: Body, path: Path) -> Found:
    yield from required(source, path, "repository")
    yield from relative(source.get("directory", ""), (*path, "directory"))


def _nfs(source: Body, path: Path) -> Found:
    yield from required(source, path, "server", "path")
    if source.get("path") and not source["path"].startswith("/"):
        yield wrong((*path, "path"), source["path"], "use an absolute path")


def _secret(source: Body, path: Path) -> Found:
    yield from required(source, path, "secretName")
    yield from _files(source, path)


def _config_map(source: Body, path: Path) -> Found:
    yield from required(source, path, "name")
    yield from _files(source, path)


def _files(source: Body, path: Path) -> Found:
    yield from mode(source, path, "defaultMode")
    for at, item in items(source, path, "items"):
        yield from _file(item, at)


def _file(item: Body, path: Path) -> Found:
    """validateKeyToPath."""
    yield from required(item, path, "key", "path")
    yield from local_file(item.get("path", ""), (*path, "path"))
    yield from mode(item, path, "mode")


def _downward(source: Body, path: Path) -> Found:
    yield from mode(source, path, "defaultMode")
    for at, item in items(source, path, "items"):
        yield from _downward_file(item, at)


def _downward_file(item: Body, path: Path) -> Found:
    yield from required(item, path, "path")
    yield from local_file(item.get("path", ""), (*path, "path"))
    yield from mode(item, path, "mode")
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        yield from field_reference(field, (*path, "fieldRef"), VOLUME_FIELDS)
        if resource is not None:
            yield conflict((*path, "resourceFieldRef"), None, "excludes fieldRef: keep one of them")
    elif resource is not None:
        yield from resource_reference(resource, (*path, "resourceFieldRef"), True)
    else:
        yield missing((*path, "fieldRef"), "add it, or resourceFieldRef")


def _projected(source: Body, path: Path) -> Found:
    yield from mode(source, path, "defaultMode")
    files: set[str] = set()
    for at, projected in items(source, path, "sources"):
        for second in list(projected)[1:]:
            yield conflict((*at, second), None, f"excludes {next(iter(projected))}: make each an item of sources")
        for kind, part in projected.items():
            yield from _projection(kind, part, (*at, kind), files)


def _projection(kind: str, part: Body, path: Path, files: set[str]) -> Found:
    """One source of a projected volume. `files`: the paths of all sources, which have to be unique."""
    if kind in ("secret", "configMap"):
        yield from required(part, path, "name")
    if kind == "serviceAccountToken":
        yield from required(part, path, "path")
        yield from local_file(part.get("path", ""), (*path, "path"))
        yield from within(part, path, "expirationSeconds", _LEAST_TOKEN_SECONDS, 2**32)
        return
    if kind == "clusterTrustBundle":
        yield from _trust_bundle(part, path)
        placed = [((*path, "path"), part.get("path", ""))]
    else:
        placed = [((*at, "path"), item.get("path", "")) for at, item in items(part, path, "items")]
        for at, item in items(part, path, "items"):
            yield from (_downward_file if kind == "downwardAPI" else _file)(item, at)
    for at, file in placed:
        if file and file in files:
            yield repeated(at, file, "the path")
        files.add(file)


def _trust_bundle(part: Body, path: Path) -> Found:
    if "name" in part and "signerName" in part:
        yield conflict((*path, "signerName"), part["signerName"], "excludes name: keep one of them")
    elif "name" in part and "labelSelector" in part:
        yield conflict((*path, "labelSelector"), None, "needs signerName: remove name, or labelSelector")
    elif not part.get("name") and not part.get("signerName"):
        yield missing((*path, "name"), "add it, or signerName")
    yield from selector(part.get("labelSelector") or {}, (*path, "labelSelector"))
    yield from required(part, path, "path")
    yield from local_file(part.get("path", ""), (*path, "path"))


def _csi(source: Body, path: Path) -> Found:
    driver = source.get("driver", "")
    if not driver:
        yield missing((*path, "driver"))
    elif len(driver) > 63:
        yield wrong((*path, "driver"), driver, "use at most 63 characters")
    else:
        yield from dns_subdomain(driver.lower(), (*path, "driver"))
    reference = source.get("nodePublishSecretRef")
    if reference is not None:
        at = (*path, "nodePublishSecretRef", "name")
        if not reference.get("name"):
            yield missing(at)
        else:
            yield from dns_subdomain(reference["name"], at)


def _ephemeral(source: Body, path: Path) -> Found:
    template = source.get("volumeClaimTemplate")
    if template is None:
        yield missing((*path, "volumeClaimTemplate"))
        return
    at, metadata = (*path, "volumeClaimTemplate"), template.get("metadata") or {}
    yield from labels(metadata.get("labels") or {}, (*at, "metadata", "labels"))
    for key in metadata.get("annotations") or {}:
        yield from label_name(key.lower(), (*at, "metadata", "annotations", key))
    for key in metadata:
        if key not in ("labels", "annotations"):
            yield conflict((*at, "metadata", key), None, "only labels and annotations are possible here: remove it")
    yield from _claim(template.get("spec") or {}, (*at, "spec"))


def _claim(spec: Body, path: Path) -> Found:
    """ValidatePersistentVolumeClaimSpec."""
    modes = spec.get("accessModes") or []
    if not modes:
        yield missing((*path, "accessModes"), "give at least one")
    for index, each in enumerate(modes):
        if each not in _ACCESS_MODES:
            yield wrong((*path, "accessModes", index), each, f"use one of {', '.join(_ACCESS_MODES)}")
    if "ReadWriteOncePod" in modes and set(modes) & set(_ACCESS_MODES[:-1]):
        yield conflict((*path, "accessModes"), None, "ReadWriteOncePod excludes other access modes: keep it alone")
    at = (*path, "resources", "requests", "storage")
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        yield missing(at)
    elif amount(str(storage)) <= 0:
        yield wrong(at, storage, "give more than 0")
    yield from selector(spec.get("selector") or {}, (*path, "selector"))
    if spec.get("storageClassName"):
        yield from dns_subdomain(spec["storageClassName"], (*path, "storageClassName"))
    yield from one_of(spec, path, "volumeMode", ("Block", "Filesystem"), empty=False)


def _image(source: Body, path: Path) -> Found:
    yield from required(source, path, "reference")
    yield from one_of(source, path, "pullPolicy", PULL_POLICIES)


_CHECKS: Mapping[str, Callable[[Body, Path], Found]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git_repo,
    "nfs": _nfs,
    "secret": _secret,
    "configMap": _config_map,
    "downwardAPI": _downward,
    "projected": _projected,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
