"""Who may connect to which port of a RayCluster, and what its pods may connect to: docs/network.md shows it, and the
tests with real pods try every cell."""

Port = tuple[str, int]
"""A pod of the cluster, `head` or `worker`, and its port."""

PORTS: dict[Port, str] = {
    ("head", 6379): "GCS, 6379",
    ("head", 8265): "dashboard and jobs, 8265",
    ("head", 10001): "`ray://`, 10001",
    ("head", 8000): "Serve, 8000",
    ("head", 8080): "metrics, 8080",
    ("head", 44217): "metrics, 44217 and 44227",
    ("head", 9399): "Redis gateway's metrics, 9399",
    ("worker", 8000): "worker: Serve, 8000",
    ("worker", 8080): "worker: metrics, 8080",
    ("worker", 10002): "worker: any other",
}
"""What is tried, and what the page calls it."""

DASHBOARD: Port = ("head", 8265)
SERVE: set[Port] = {("head", 8000), ("worker", 8000)}

SOURCES: dict[str, tuple[str, set[Port]]] = {
    "worker": ("pods of the same cluster", set(PORTS)),
    "head": ("its head", set(PORTS)),
    "other-cluster": ("another cluster of the tenant", set()),
    "submitter": ("pods of Jobs in the tenant's namespace (RayJob's submitter)", {DASHBOARD}),
    "tenant-pod": ("any other pod of the tenant", set()),
    "same-name": ("a cluster of the same name in another tenant", set()),
    "operator": ("the operator's namespace", {DASHBOARD, ("head", 8000)}),
    "dashboard": ("`dashboardFrom`", {DASHBOARD}),
    "client": ("`clientFrom`", {("head", 10001)}),
    "serve": ("`serveFrom`", SERVE),
    "monitoring": ("`monitoring`", {("head", 8080), ("head", 44217), ("head", 9399), ("worker", 8080)}),
    "ingress": ("`ingressController`, for clusters with an `ingress`", {DASHBOARD}),
    "elsewhere": ("any other namespace", set()),
}
"""Who tries: what the page calls it, and where it gets through."""

DESTINATIONS = {
    "dns-pod": "DNS server, a pod",
    "dns-node": "DNS cache of the node",
    "api-server": "API server",
    "redis": "Redis",
    "said": "what `egress` says",
    "same-host": "another port there",
    "foreign-pod": "pods of other namespaces",
}

DNS = {"dns-pod", "dns-node"}

REACH: dict[str, tuple[str, set[str]]] = {
    "head": ("head", {*DNS, "said", "api-server", "redis"}),
    "cleanup": ("the Job that cleans up after a RayCluster", {*DNS, "said", "redis"}),
    "worker": ("worker", {*DNS, "said"}),
    "tenant-pod": ("any other pod of the tenant", {*DNS, "said"}),
}
"""What pods of a tenant reach, beside each other within a cluster."""


def ports_table() -> str:
    """Who may connect to which port, in Markdown."""
    rows = [(title, [port in allowed for port in PORTS]) for title, allowed in SOURCES.values()]
    return _table("from", [*PORTS.values()], rows)


def reach_table() -> str:
    """What a tenant's pods may connect to, in Markdown."""
    rows = [(title, [place in allowed for place in DESTINATIONS]) for title, allowed in REACH.values()]
    return _table("to", [*DESTINATIONS.values()], rows)


def _table(corner: str, columns: list[str], rows: list[tuple[str, list[bool]]]) -> str:
    lines = [[corner, *columns], ["---"] * (len(columns) + 1)]
    lines += [[title, *("yes" if each else "" for each in cells)] for title, cells in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
