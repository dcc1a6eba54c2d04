"""What of a stack is outside Kubernetes, and the key of Cloudera ML's API in its configuration. Pure functions."""

from collections.abc import Mapping
from typing import Any

from core.problems import Finding
from core.stack_file import PREFIX
from stacks.settings import StackSettings

API_KEY = "cmlApiKey"
"""The only key of a stack file whose value Pulumi encrypts. The program does not read it: Pulumi passes it to the
provider (components/dynamic/cml.py)."""

_OUTSIDE = {"cml", "external_clusters"}

_ALONE = {*_OUTSIDE, "jobs", "cml_api_key", "extends", "policies"}


def without_kubernetes(stack: StackSettings) -> bool:
    """Whether a stack has clusters on Cloudera ML or of others, and nothing that belongs to a Kubernetes cluster."""
    return bool(stack.model_fields_set & _OUTSIDE) and stack.model_fields_set <= _ALONE


def installs_operator(stack: StackSettings) -> bool:
    """Whether a stack creates KubeRay's operator from its manifests."""
    return stack.platform is None and stack.operator.install == "manifests" and not without_kubernetes(stack)


def without_key(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a configuration without the API key, encrypted or not."""
    return {key: value for key, value in values.items() if key != API_KEY}


def plain_key(values: Mapping[str, Any]) -> list[Finding]:
    """The finding for a key that Pulumi has not encrypted. It does not show the key."""
    value = values.get(API_KEY)
    if value is None or isinstance(value, Mapping):
        return []
    message = (
        f"is plain text: run `pulumi config set --secret {PREFIX}{API_KEY}`, which encrypts it. Then replace the key "
        "in Cloudera ML, because it has been seen"
    )
    return [Finding((f"{PREFIX}{API_KEY}",), None, message, "plaintext-secret")]
