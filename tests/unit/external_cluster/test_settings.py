"""Addresses of external clusters, and what their settings allow."""

import pytest

from components.external_cluster.manifests import connection
from components.external_cluster.settings import Address, ExternalClusterSettings, parse
from components.ray_cluster.component import connection as of_ray_cluster
from components.ray_cluster.manifests import HEAD_PORTS

IMAGE = "rayproject/ray:2.60.0"


def read(text: str) -> Address:
    return parse(text, ("http", "https"), 8265)


@pytest.mark.parametrize(
    ("text", "service", "network"),
    [
        ("https://ray.example.com:8265", None, None),
        ("http://a-head-svc.team-b.svc:8265", ("a-head-svc", "team-b"), None),
        ("http://a-head-svc.team-b.svc.cluster.local:80", ("a-head-svc", "team-b"), None),
        ("http://svc.example.com:8265", None, None),
        ("http://192.0.2.7:8265", None, "192.0.2.7/32"),
        ("http://[2001:db8::7]:8265", None, "2001:db8::7/128"),
    ],
)
def test_where_an_address_is(text: str, service: tuple[str, str] | None, network: str | None) -> None:
    assert (read(text).service, read(text).network) == (service, network)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ray.example.com:8265",
        "https://:8265",
        "https://ray.example.com:0",
        "https://ray.example.com:65536",
        "https://ray.example.com:x",
        "https://Ray.example.com:8265",
        "https://ray.example.com:8265/",
        "https://ray.example.com:8265?a=b",
        "https://user@ray.example.com:8265",
        "https://ray_1.example.com:8265",
        "https://ray.example.com.:8265",
        "http://localhost:8265",
        "http://[::1]:8265",
        "http://0.0.0.0:8265",
        "http://[fe80::1%eth0]:8265",
        "http://[::1:8265",
        "http://[2001:db8::7%eth0]:8265",
        "http://169.254.169.254:80",
        "http://192.0.2.07:8265",
        "https://ray.example.com:08265",
        "https://ray.exa\nmple.com:8265",
        "http://ray.example.com :8265",
    ],
)
def test_another_text_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match=r"write|Ray's own is 8265|tokenSecret"):
        read(text)


@pytest.mark.parametrize("text", ["ray://bob:hunter2@ray.example.com:1", "https://bob:hunter2@ray.example.com:x"])
def test_no_message_shows_credentials_of_an_address(text: str) -> None:
    with pytest.raises(ValueError, match="tokenSecret") as refused:
        read(text)
    assert "hunter2" not in str(refused.value)


def test_a_service_has_the_addresses_that_a_ray_cluster_of_its_name_has() -> None:
    settings = ExternalClusterSettings(
        name="shared",
        image=IMAGE,
        dashboard_address="http://shared-head-svc.team-b.svc:8265",
        client_address="ray://shared-head-svc.team-b.svc:10001",
    )
    assert connection(settings, "team-a") == of_ray_cluster("team-b", "shared-head-svc", HEAD_PORTS)


def test_outside_of_kubernetes_there_is_no_service() -> None:
    settings = ExternalClusterSettings(name="lab", image=IMAGE, dashboard_address="https://ray.example.com:8265")
    found = connection(settings, "team-a")
    assert (found["headService"], found["jobsUrl"]) == ("", "https://ray.example.com:8265")
    assert found.keys() == of_ray_cluster("team-b", "shared-head-svc", HEAD_PORTS).keys()
