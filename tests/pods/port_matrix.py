"""The sources that may connect to each port of a RayCluster, and the destinations of its pods: docs/network.md shows
these tables, and the tests with real pods try every cell."""

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
"""The ports to try, and their names in the page."""

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
"""The sources by pod: the name in the page, and the ports that they reach."""

DESTINATIONS = {
    "dns-pod": "DNS server, a pod",
    "dns-node": "DNS cache of the node",
    "api-server": "ports of the API server, 443 and 6443, at its `cidrs` or else any address",
    "redis": "Redis",
    "egress": "what `egress` allows",
    "same-host": "another port there",
    "foreign-pod": "pods of other namespaces",
}

DNS = {"dns-pod", "dns-node"}

REACH: dict[str, tuple[str, set[str]]] = {
    "head": ("head", {*DNS, "egress", "api-server", "redis"}),
    "cleanup": ("the Job that cleans up after a RayCluster", {*DNS, "egress", "redis"}),
    "worker": ("worker", {*DNS, "egress"}),
    "tenant-pod": ("any other pod of the tenant", {*DNS, "egress"}),
}
"""The destinations that pods of a tenant reach, besides pods of the same cluster."""


def ports_table() -> str:
    """The sources and ports, in Markdown."""
    rows = [(title, [port in allowed for port in PORTS]) for title, allowed in SOURCES.values()]
    return _table("from", [*PORTS.values()], rows)


def reach_table() -> str:
    """The destinations of a tenant's pods, in Markdown."""
    rows = [(title, [place in allowed for place in DESTINATIONS]) for title, allowed in REACH.values()]
    return _table("to", [*DESTINATIONS.values()], rows)


def _table(corner: str, columns: list[str], rows: list[tuple[str, list[bool]]]) -> str:
    lines = [[corner, *columns], ["---"] * (len(columns) + 1)]
    lines += [[title, *("yes" if each else "" for each in cells)] for title, cells in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
