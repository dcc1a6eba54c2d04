"""The keys of a cluster launcher file that describe machines, and what replaces them where Ray runs in pods."""

from .reader import Reader

_MACHINES = "the machines are the Kubernetes cluster's"

TOP_LEVEL = {
    "auth": ("nobody logs in to a pod by SSH", "use `kubectl exec`, and `ray job submit` for work"),
    "initialization_commands": ("they prepare a machine before Docker", "do it when the node's image is built"),
    "setup_commands": ("a pod starts from a finished image", "do it when the image is built, or in runtime_env"),
    "head_setup_commands": ("a pod starts from a finished image", "do it when the image is built, or in runtime_env"),
    "worker_setup_commands": ("a pod starts from a finished image", "do it when the image is built, or in runtime_env"),
    "file_mounts": (
        "no files are copied to pods",
        "put code in runtime_env.working_dir, and data on a volume (volumes, volumeMounts)",
    ),
    "cluster_synced_files": ("no files are copied between pods", "put them on a volume (volumes, volumeMounts)"),
    "file_mounts_sync_continuously": ("no files are copied to pods", "leave it out"),
    "rsync_exclude": ("no files are copied to pods", "leave it out; runtime_env has excludes"),
    "rsync_filter": ("no files are copied to pods", "leave it out; runtime_env has excludes"),
    "metadata": ("Ray passes over it", "put it in labels or annotations"),
    "worker_default_node_type": ("Ray passes over it", "leave it out"),
    "no_restart": ("Ray's launcher sets it for itself", "leave it out"),
}
"""Keys of the file, why they have no counterpart, and what to do instead."""

PROVIDER = {
    "region": (_MACHINES, "choose nodes by a pool with the label topology.kubernetes.io/region"),
    "location": (_MACHINES, "choose nodes by a pool with the label topology.kubernetes.io/region"),
    "availability_zone": (_MACHINES, "choose nodes by a pool with the label topology.kubernetes.io/zone"),
    "head_ip": (_MACHINES, "join the machine to the Kubernetes cluster, and describe it under nodes"),
    "worker_ips": (_MACHINES, "join the machines to the Kubernetes cluster, and describe them under nodes"),
    "coordinator_address": (_MACHINES, "join its machines to the Kubernetes cluster, and describe them under nodes"),
    "security_group": (_MACHINES, "use NetworkPolicies"),
    "services": ("KubeRay makes the head's Service, <name>-head-svc", "keep other Services as manifests"),
    "autoscaler_service_account": ("the tenant's account is made by the stack", "see rayDeployer"),
    "autoscaler_role": ("KubeRay makes the autoscaler's Role", "leave it out"),
    "autoscaler_role_binding": ("KubeRay makes the autoscaler's RoleBinding", "leave it out"),
}
"""Keys under `provider`. All its other keys describe machines, too."""

NODE_CONFIG = "describe the machines under nodes, and say what a pod needs with cpu, memory and gpus"


def note_top_level(document: Reader) -> None:
    """Notes the keys of the file that have no counterpart."""
    for key, (why, instead) in TOP_LEVEL.items():
        part = document.at(key)
        for each in [each for _, each in part.items()] or [part]:
            each.note(why, instead)


def note_provider(provider: Reader) -> None:
    """Notes all keys of the provider except the namespace, which was used."""
    provider.at("type").use()
    for key, part in provider.items():
        if key not in ("type", "namespace"):
            part.note(*PROVIDER.get(str(key), (_MACHINES, "leave it out, or do it where the nodes are made")))


def note_machine(node_config: Reader) -> None:
    """Notes the description of a machine; older files have its `resources` in it."""
    for key, part in node_config.items():
        if key != "resources":
            part.note(f"it describes a machine, and {_MACHINES}", NODE_CONFIG)
