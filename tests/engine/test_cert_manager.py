"""Authorities of RayClusters that a real cert-manager issues, and renews."""

import base64
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from cryptography import x509
from kubernetes import client

from components.payloads.pod_certificate import certify
from components.tls.manifests import LIFETIME_HOURS, secret_name
from local import tools
from local.rehearsal import Rehearsal
from testbed.kubectl import Kubectl
from testbed.platform_stack import Stack, training
from testbed.pods.steps import until
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.shared_cluster, pytest.mark.timeout(600)]

ISSUERS = """\
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: self-signed}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: lab, namespace: cert-manager}
spec:
  {isCA: true, commonName: lab, secretName: lab, duration: 200000h, issuerRef: {kind: ClusterIssuer, name: self-signed}}
---
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: lab}
spec: {ca: {secretName: lab}}
"""
"""An authority of the company, as cert-manager's guide sets one up."""


@pytest.fixture(scope="module")
def issuer(shared_cluster: Rehearsal, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A ClusterIssuer of a cert-manager that runs until the end of the file."""
    does, folder = Kubectl(shared_cluster).does, tmp_path_factory.mktemp("cert-manager")
    does("apply", "--server-side", "-f", str(tools.CERT_MANAGER.share("deploy/crds")))
    Kubectl(shared_cluster).until_established()
    does("create", "namespace", "cert-manager")
    environment = {**os.environ, "KUBECONFIG": str(shared_cluster.kubeconfig)}
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            [tools.CERT_MANAGER.program("cert-manager")], env=environment, stdout=log, stderr=log
        ) as controllers,
    ):
        try:
            does("apply", "-f", "-", bodies=list(yaml.safe_load_all(ISSUERS)))
            does("wait", "--for=condition=Ready", "--timeout=300s", "clusterissuer/lab")
            yield "lab"
        finally:
            controllers.terminate()
    does("delete", "namespace", "cert-manager")
    does("delete", "-f", str(tools.CERT_MANAGER.share("deploy/crds")))


@pytest.fixture(scope="module")
def up(stack_on_operator: MakeStack, issuer: str) -> Iterator[Stack]:
    def with_tls(settings: dict[str, Any]) -> None:
        settings["tenants"][0].update(name="certified")
        training(settings)["tls"] = {"issuer": {"name": issuer, "kind": "ClusterIssuer"}}

    made = stack_on_operator("certified")
    made.edit(with_tls)
    made.up()
    yield made
    made.destroy()


def stored(core: client.CoreV1Api) -> dict[str, bytes]:
    """The Secret of the cluster's authority."""
    secret = core.read_namespaced_secret(secret_name("training"), "certified")
    return {key: base64.b64decode(value) for key, value in (secret.data or {}).items()}


def mounted(core: client.CoreV1Api, folder: Path) -> Path:
    """The cluster's Secret as files, as the pod's init container has them, and in `pod` what that makes of them."""
    (folder / "pod").mkdir(parents=True)
    for key, value in stored(core).items():
        (folder / key).write_bytes(value)
    certify(folder, folder / "pod", "127.0.0.1", [])
    return folder


def connected(server: Path, caller: Path) -> bool:
    """Whether a process of one pod accepts a caller of the other, and the caller the process. Ray uses gRPC, too."""
    key, certificate, authority = ((server / "pod" / each).read_bytes() for each in ("tls.key", "tls.crt", "ca.crt"))
    serving = grpc.server(ThreadPoolExecutor(1))
    port = serving.add_secure_port(
        "127.0.0.1:0", grpc.ssl_server_credentials([(key, certificate)], authority, require_client_auth=True)
    )
    serving.start()
    key, certificate, authority = ((caller / "pod" / each).read_bytes() for each in ("tls.key", "tls.crt", "ca.crt"))
    with grpc.secure_channel(f"127.0.0.1:{port}", grpc.ssl_channel_credentials(authority, key, certificate)) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=20)
        except grpc.FutureTimeoutError:
            return False
        finally:
            serving.stop(None)
    return True


def renew(cluster: Rehearsal) -> None:
    """As `cmctl renew`."""
    api = client.CustomObjectsApi(cluster.client())
    where = ("cert-manager.io", "v1", "certified", "certificates", secret_name("training"))
    condition = {"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "renewed by hand"}
    live: Any = api.get_namespaced_custom_object(*where)
    live["status"]["conditions"].append(condition)
    api.replace_namespaced_custom_object_status(*where, live)


def test_an_authority_of_cert_manager_serves_pods_from_before_and_after_its_renewal(
    up: Stack, shared_cluster: Rehearsal, core: client.CoreV1Api, tmp_path: Path
) -> None:
    Kubectl(shared_cluster).does(
        "wait", "--for=condition=Ready", "-n", "certified", "--timeout=300s", f"certificate/{secret_name('training')}"
    )
    before = mounted(core, tmp_path / "before")
    certificate = x509.load_pem_x509_certificate((before / "tls.crt").read_bytes())
    assert certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert "CN=lab" in certificate.issuer.rfc4514_string()
    assert (certificate.not_valid_after_utc - certificate.not_valid_before_utc).days == LIFETIME_HOURS // 24
    assert connected(before, before)

    renew(shared_cluster)
    until(lambda: stored(core)["tls.crt"] != (before / "tls.crt").read_bytes(), "the certificate is renewed")
    after = mounted(core, tmp_path / "after")
    assert (after / "tls.key").read_bytes() == (before / "tls.key").read_bytes()
    assert connected(before, after)
    assert connected(after, before)

    up.pulumi("preview", "--refresh", "--expect-no-changes")
