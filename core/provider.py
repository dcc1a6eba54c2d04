"""The version of Pulumi's Kubernetes provider that the program asks for."""

import os

PROVIDER_VERSION = "RAY_PLATFORM_KUBERNETES_PROVIDER"
"""Variable with the version of the provider that there is. The rehearsal sets it: the provider that it builds is older
than the Python package, and the engine warns at every command about a provider that is older than what a program asks
for (pulumi 3.276, pkg/host/host.go)."""


def provider_version() -> str | None:
    """None: the version of the Python package."""
    return os.environ.get(PROVIDER_VERSION)
