"""The settings of a provider resource (or of the environment): its cluster, and options.

Names, defaults and environment variables are those of Pulumi's plugin
(https://www.pulumi.com/registry/packages/kubernetes/api-docs/provider/).
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from local.plugins.kubernetes.objects import at
from local.plugins.kubernetes.values import UNKNOWN, Json

UNSUPPORTED = ("alwaysRender", "cluster", "renderYamlToDirectory")
"""Unsupported settings whose effect a program would miss; they are refused instead of ignored."""

_CLUSTER_KEYS = ("kubeconfig", "context", "cluster")

_VARIABLES = {
    "deleteUnreachable": "PULUMI_K8S_DELETE_UNREACHABLE",
    "enableConfigMapMutable": "PULUMI_K8S_ENABLE_CONFIGMAP_MUTABLE",
    "enablePatchForce": "PULUMI_K8S_ENABLE_PATCH_FORCE",
    "enableSecretMutable": "PULUMI_K8S_ENABLE_SECRET_MUTABLE",
    "enableServerSideApply": "PULUMI_K8S_ENABLE_SERVER_SIDE_APPLY",
    "skipUpdateUnreachable": "PULUMI_K8S_SKIP_UPDATE_UNREACHABLE",
    "upsertExistingObjects": "PULUMI_K8S_UPSERT_EXISTING_OBJECTS",
}


@dataclass(frozen=True)
class Settings:
    """One provider's settings.

    Fields: `kubeconfig` is a path or the content, empty for the default places ($KUBECONFIG, ~/.kube/config, a pod's
    service account); `context` empty for the current one; `namespace` for objects that set none; the flags as Pulumi
    documents them.
    """

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    delete_unreachable: bool = False
    skip_update_unreachable: bool = False
    enable_patch_force: bool = False
    enable_config_map_mutable: bool = False
    enable_secret_mutable: bool = False
    upsert_existing_objects: bool = False

    @classmethod
    def read(cls, variables: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> "Settings":
        """Reads the variables of the engine's Configure (`kubernetes:config:NAME`); flags default to the
        environment."""
        configured = {key.removeprefix("kubernetes:config:"): value for key, value in variables.items()}

        def flag(name: str) -> bool:
            return (configured.get(name) or environment.get(_VARIABLES[name], "")) == "true"

        return cls(
            kubeconfig=configured.get("kubeconfig", ""),
            context=configured.get("context", ""),
            namespace=configured.get("namespace", ""),
            delete_unreachable=flag("deleteUnreachable"),
            skip_update_unreachable=flag("skipUpdateUnreachable"),
            enable_patch_force=flag("enablePatchForce"),
            enable_config_map_mutable=flag("enableConfigMapMutable"),
            enable_secret_mutable=flag("enableSecretMutable"),
            upsert_existing_objects=flag("upsertExistingObjects"),
        )


def complaints(news: Json, default_provider: bool, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The errors of CheckConfig, by property: settings that are not supported here, and violations of strict mode."""
    found = {name: f"the stand-in does not do `{name}`; use the real plugin" for name in UNSUPPORTED if news.get(name)}
    apply = str(news.get("enableServerSideApply", environment.get(_VARIABLES["enableServerSideApply"], "true"))).lower()
    if apply == "false":
        found["enableServerSideApply"] = (
            "the stand-in always uses server-side apply; use the real plugin for anything else"
        )
    if str(news.get("strictMode", "")).lower() == "true":
        if default_provider:
            found[""] = "strict mode prohibits default provider"
        for name in ("kubeconfig", "context"):
            if not news.get(name):
                found[name] = f'strict mode requires Provider "{name}" argument'
    return found


def changes(olds: Json, news: Json) -> tuple[list[str], list[str]]:
    """Which settings differ, and which of them select another cluster, so that every object in it is replaced.

    As in Pulumi's plugin: if `clusterIdentifier` is set, it alone decides: a change replaces. Otherwise the active
    cluster of the kubeconfig decides, and an unknown one counts as another.
    """
    changed = sorted(key for key in olds.keys() | news.keys() if olds.get(key) != news.get(key))
    if not changed:
        return [], []
    before, after = olds.get("clusterIdentifier"), news.get("clusterIdentifier")
    if after and before == after:
        return changed, []
    replaces = ["clusterIdentifier"] if before and after else []
    unknown = [key for key in _CLUSTER_KEYS if news.get(key) is UNKNOWN]
    if unknown:
        return changed, [*replaces, *unknown]
    old, new = _active_cluster(olds), _active_cluster(news)
    if old and new and old != new:
        replaces += [key for key in _CLUSTER_KEYS if key in changed]
    return changed, replaces


def _active_cluster(config: Json) -> Any:
    kubeconfig = parse_kubeconfig(config.get("kubeconfig"))
    context = config.get("context") or kubeconfig.get("current-context")
    cluster = at(_named(kubeconfig, "contexts", context), "context", "cluster")
    return at(_named(kubeconfig, "clusters", cluster), "cluster")


def _named(kubeconfig: Json, section: str, name: Any) -> Json | None:
    return next((entry for entry in kubeconfig.get(section) or [] if entry.get("name") == name), None)


def parse_kubeconfig(setting: Any) -> Json:
    """The kubeconfig as a mapping, from its content, a path, or a mapping; empty if it has no usable value."""
    if isinstance(setting, dict):
        return setting
    if not isinstance(setting, str) or not setting.strip():
        return {}
    text = setting
    if is_path(setting):
        path = Path(setting).expanduser()
        if not path.is_file():
            return {}
        text = path.read_text()
    parsed = yaml.safe_load(text)
    return parsed if isinstance(parsed, dict) else {}


def is_path(kubeconfig: str) -> bool:
    """Whether a `kubeconfig` setting is a path; content has a line break or is a JSON object."""
    return "\n" not in kubeconfig and not kubeconfig.lstrip().startswith("{")
