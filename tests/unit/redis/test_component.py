"""How Redis is provisioned: its objects and their order."""

from pathlib import Path
from typing import Any

import pulumi
import pytest
from cryptography import x509

from components.redis.component import ExternalRedis, ExternalRedisArgs
from components.redis.existing_server import ExternalSettings
from components.tls.issuing import new_certificate
from stacks.load import parse
from stacks.program.build import build
from testbed.recorder import Recorder, record

pytestmark = pytest.mark.thorough

CLUSTER = {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", "faultTolerance": True}


def built(**redis: Any) -> Recorder:
    keys = {
        "operator": {"location": "config/default"},
        "redis": redis,
        "tenants": [{"name": "a", "clusters": [CLUSTER]}, {"name": "b"}],
    }
    names = [f"platform-redis-ray-system-password-{user}-{each}" for user in ("_nodes", "a", "b") for each in (1, 2, 3)]
    made = {name: {"password": f"of {name}"} for name in names}
    return record(lambda: build(parse(keys)), made)


def test_redis_and_the_secret_are_deleted_after_the_ray_cluster(kubectl_that_renders: Path) -> None:
    recorder = built()
    for name in ("platform-redis-ray-system-nodes", "platform-redis-ray-system-secret-a"):
        assert recorder.made_before(name, "a/training-ray-cluster")
    assert recorder.made_before("platform-kuberay-crd-guard", "platform-redis-ray-system-nodes")


def test_its_pods_start_after_policies_and_users(kubectl_that_renders: Path) -> None:
    recorder = built(namespace="redis")
    last = "platform-redis-redis-nodes"
    for name in ("network-default-deny", "network-ray-redis", "secret-users", "configmap-scripts"):
        assert recorder.made_before(f"platform-redis-redis-{name}", last)
    assert recorder.made_before("platform-redis-redis-namespace", last)
    assert recorder.registered[last].inputs["spec"]["template"]["spec"]["priorityClassName"] == "ray-head"


def test_each_user_has_a_password_for_each_generation_which_secrets_keep(kubectl_that_renders: Path) -> None:
    recorder = built(passwordGenerations=[2, 3])
    prefix = "platform-redis-ray-system"
    names = [f"{prefix}-password-{user}-{number}" for user in ("_nodes", "a", "b") for number in (2, 3)]
    assert recorder.kinds()["pulumi-python:dynamic/ray-platform:Password"] == names
    for name in ("secret-users", "secret-a"):
        assert recorder.registered[f"{prefix}-{name}"].inputs["stringData"]["generations"] == "3\n2\n"


def test_an_issuer_of_cert_manager_certifies_the_nodes(kubectl_that_renders: Path) -> None:
    pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    recorder = built(tls={"issuer": {"name": "ca"}, "authority": pem})
    names = recorder.registered["platform-redis-ray-system-certificate-tls"].inputs["spec"]["dnsNames"]
    assert {"ray-redis-2.ray-redis.ray-system.svc.cluster.local", "ray-redis-2.ray-redis.ray-system.svc"} <= set(names)
    assert recorder.registered["platform-redis-ray-system-secret-a"].inputs["stringData"]["ca.crt"] == pem


def test_the_stacks_certificate_and_its_authority_have_different_subjects() -> None:
    """If both have the same name, OpenSSL considers the certificate self-signed and refuses it."""
    authority, certificate, _ = (text.encode() for text in new_certificate("ray-redis", ["ray-redis-0"])[:3])
    ca, made = (x509.load_pem_x509_certificate(pem) for pem in (authority, certificate))
    made.verify_directly_issued_by(ca)
    assert made.subject != ca.subject
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["ray-redis-0"]


def test_an_external_redis_without_its_secret_is_refused() -> None:
    settings = {"address": "redis:6379", "secretName": "redis", "secretNamespace": "external"}
    args = ExternalRedisArgs(ExternalSettings.model_validate(settings), {"a": "a"})
    with pytest.raises(pulumi.RunError, match="there is no Secret external/redis"):
        record(lambda: ExternalRedis("redis", args))
