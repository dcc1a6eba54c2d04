"""What Prometheus scrapes of Ray clusters on Cloudera ML, each through the subdomain of its head. Pure functions."""

from collections.abc import Iterable
from dataclasses import dataclass

from components.payloads.cml_application import HEAD, JOBS, METRICS, TARGETS, labels
from core.body import Body
from core.yaml_writer import go_yaml

AUTHORITY = "ca.pem"
"""File with the authority of the workspace, beside the scrape file."""


@dataclass(frozen=True)
class OnCml:
    """A Ray cluster on Cloudera ML."""

    name: str
    project: str
    """Id of the head's project; the label `namespace` of its metrics."""
    host: str
    """Of its head, without scheme."""
    authority: bool
    """Whether the workspace's certificate has an authority of its own, in AUTHORITY."""


def key_file(cluster: str) -> str:
    """The file with the key of a cluster's metrics, beside the scrape file."""
    return f"{cluster}.key"


def scrape_file(clusters: Iterable[OnCml], seconds: int) -> str:
    """A file of `scrape_config_files`, or a whole configuration. `seconds`: between two scrapes."""
    return go_yaml({"scrape_configs": [_scrape(each, seconds) for each in clusters]}, sort_keys=False, width=1000)


def _scrape(cluster: OnCml, seconds: int) -> Body:
    # For its discovery Prometheus 2.42 has no type by default.
    access: Body = {"authorization": {"type": "Bearer", "credentials_file": key_file(cluster.name)}}
    if cluster.authority:
        access["tls_config"] = {"ca_file": AUTHORITY}
    of_head = [{"targets": [each], "labels": labels(f"{METRICS}/{each}", each, HEAD, HEAD)} for each in (HEAD, JOBS)]
    return {
        "job_name": f"cml-{cluster.name}",
        "scrape_interval": f"{seconds}s",
        "scheme": "https",
        **access,
        # Always a target, so that one that does not answer is known.
        "static_configs": of_head,
        "http_sd_configs": [{"url": f"https://{cluster.host}{TARGETS}", "refresh_interval": f"{seconds}s", **access}],
        "relabel_configs": [
            # As metrics.Job names heads and workers.
            {"source_labels": ["ray_io_node_type"], "target_label": "job", "replacement": "ray-$1"},
            {"source_labels": ["__address__"], "target_label": "instance"},
            {"target_label": "namespace", "replacement": cluster.project},
            {"target_label": "ray_io_cluster", "replacement": cluster.name},
            {"target_label": "__address__", "replacement": cluster.host},
        ],
    }
