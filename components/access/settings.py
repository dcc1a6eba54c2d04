"""Settings of access rights, and of the account of Ray's pods."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from core.types import DnsSubdomain, Settings

_ACCOUNT = re.compile(r"serviceAccount:[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?", re.ASCII)
_NAMED = re.compile(r"(user|group):[^\s\x00-\x1f\x7f]([^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?")
_KUBERNETES_OWN = "system:"
_ACCOUNTS_OF_A_NAMESPACE = re.compile(r"group:system:serviceaccounts:[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)


def _subject(text: str) -> str:
    if not _ACCOUNT.fullmatch(text) and not _NAMED.fullmatch(text):
        raise ValueError(
            f"{text!r} names nobody: write group:NAME, user:NAME, or serviceAccount:NAMESPACE/NAME in lower case"
        )
    if text.partition(":")[2].startswith(_KUBERNETES_OWN) and not _ACCOUNTS_OF_A_NAMESPACE.fullmatch(text):
        raise ValueError(
            f"{text!r} is Kubernetes' own, everybody or what may do everything already: name a group, a user or a "
            "serviceAccount of yours (all accounts of a namespace: group:system:serviceaccounts:NAMESPACE)"
        )
    return text


Subject = Annotated[
    str,
    AfterValidator(_subject),
    WithJsonSchema({"type": "string", "pattern": f"^({_NAMED.pattern}|{_ACCOUNT.pattern})$"}),
]
"""A subject: `group:NAME`, `user:NAME` with the names of the cluster's authentication, or
`serviceAccount:NAMESPACE/NAME`."""


class AccessSettings(Settings):
    """Rights in the whole cluster."""

    cluster_admins: tuple[Subject, ...] = ()
    """Subjects that manage all of KubeRay's objects and Volcano's queues: `group:NAME`, `user:NAME` or
    `serviceAccount:NAMESPACE/NAME`."""


class RayUserSettings(Settings):
    """A user of a tenant's RayClusters, without the right to change them. Short form: only the subject."""

    subject: Subject
    """`group:NAME`, `user:NAME` or `serviceAccount:NAMESPACE/NAME`."""

    clusters: tuple[str, ...] | None = None
    """RayClusters, by name, whose token may be read and whose ports may be forwarded. Default: all of the tenant's.
    An empty list: none, for users who only read."""

    submit_jobs: bool = False
    """True: the user may create RayJobs on these clusters."""


def _in_short(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [each if isinstance(each, dict | RayUserSettings) else {"subject": each} for each in value]


RayUsers = Annotated[
    tuple[RayUserSettings, ...],
    BeforeValidator(_in_short, json_schema_input_type=tuple[Subject | RayUserSettings, ...]),
]
"""Users of a tenant's RayClusters, each in full or by its subject."""


class RayDeployerSettings(Settings):
    """The ServiceAccount with which code on a RayCluster may create pods, Deployments and Services, and its Role."""

    service_account: DnsSubdomain = "ray-deployer"
    """Name of the ServiceAccount; RayClusters of the tenant run as it."""

    role: DnsSubdomain = "ray-deployer"
    """Name of the Role."""

    role_binding: DnsSubdomain = "ray-deployer"
    """Name of the RoleBinding."""
