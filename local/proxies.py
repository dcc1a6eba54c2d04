"""HTTP proxies that the environment names: for downloads they stay, for the rehearsal itself they do not count.

A proxy cannot reach an API server on loopback or in a box. kubectl and Kubernetes' programs, Python's clients and gRPC
all go by the same variables and would ask it.
"""

from collections.abc import Mapping

from local.networks import BOXES_NETWORK, POD_NETWORK, SERVICE_NETWORK

OURS = ("localhost", "127.0.0.1", "::1", str(BOXES_NETWORK), SERVICE_NETWORK, POD_NETWORK, ".svc", ".cluster.local")
"""Where everything of a rehearsal is."""

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy")
"""Each is also known in capitals to Go and Python (golang.org/x/net/http/httpproxy, urllib.request), but not to apt
(apt-transport-http(1)) and gRPC (http_proxy_mapper)."""

EXCEPTIONS = ("no_proxy", "NO_PROXY")
"""gRPC knows the first alone; Go prefers the second, Python the first."""


def corrections(environment: Mapping[str, str]) -> dict[str, str]:
    """What to change in an environment so that its proxies are asked for downloads and for nothing of the rehearsal.

    Empty where it names none.
    """
    proxies = {name: environment.get(name) or environment.get(name.upper(), "") for name in PROXIES}
    named = {name: proxy for name, proxy in proxies.items() if proxy}
    if not named:
        return {}
    said = [entry.strip() for name in EXCEPTIONS for entry in environment.get(name, "").split(",")]
    exceptions = ",".join(dict.fromkeys(entry for entry in [*said, *OURS] if entry))
    return {**named, **dict.fromkeys(EXCEPTIONS, exceptions)}
