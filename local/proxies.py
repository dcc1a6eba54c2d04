"""HTTP proxies in the environment: they are used for downloads, and not for the rehearsal itself.

A proxy cannot reach an API server on loopback or in a box. But kubectl, Kubernetes' programs, Python's clients and gRPC
all read the same variables and would use it.
"""

from collections.abc import Mapping

from local.networks import BOXES_NETWORK, POD_NETWORK, SERVICE_NETWORK

OURS = ("localhost", "127.0.0.1", "::1", str(BOXES_NETWORK), SERVICE_NETWORK, POD_NETWORK, ".svc", ".cluster.local")
"""The addresses of all parts of a rehearsal."""

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy")
"""Go and Python also read each in capitals (golang.org/x/net/http/httpproxy, urllib.request), but apt
(apt-transport-http(1)) and gRPC (http_proxy_mapper) do not."""

EXCEPTIONS = ("no_proxy", "NO_PROXY")
"""gRPC only reads the first; Go prefers the second, Python the first."""


def corrections(environment: Mapping[str, str]) -> dict[str, str]:
    """The changes of an environment with which its proxies are used for downloads, but not for the rehearsal.

    Empty if it sets no proxies.
    """
    proxies = {name: environment.get(name) or environment.get(name.upper(), "") for name in PROXIES}
    named = {name: proxy for name, proxy in proxies.items() if proxy}
    if not named:
        return {}
    configured = [entry.strip() for name in EXCEPTIONS for entry in environment.get(name, "").split(",")]
    exceptions = ",".join(dict.fromkeys(entry for entry in [*configured, *OURS] if entry))
    return {**named, **dict.fromkeys(EXCEPTIONS, exceptions)}
