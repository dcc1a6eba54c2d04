"""Ray's processes use TLS with each other, and refuse clients without a certificate of their cluster's authority."""

import pytest

from testbed.pods.platform import SECURED, Platform

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(300, func_only=True)]

TASK = """
import ray, socket
ray.init(logging_level="error")
print("ran on", ray.get(ray.remote(num_cpus=0, num_gpus=1)(lambda: socket.gethostname()).remote()))
"""

KNOCK = """
import socket, ssl, sys
context = ssl.create_default_context(cafile="/etc/ray/tls/ca.crt")
context.set_alpn_protocols(["h2"])
if sys.argv[2] == "certified":
    context.load_cert_chain("/etc/ray/tls/tls.crt", "/etc/ray/tls/tls.key")
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as plain:
    try:
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as secured:
            secured.settimeout(20)
            print("accepted" if secured.recv(1) else "hung up")  # HTTP/2: the server speaks first
    except OSError as error:
        print("refused:", error)
"""


def test_a_task_runs_on_a_worker_of_the_autoscaler(platform: Platform) -> None:
    output = platform.in_head("python", "-c", TASK, cluster=SECURED)
    assert f"ran on {SECURED}-laptop-1gpu-worker-" in output


@pytest.mark.parametrize("port", [6379, 10001])
def test_only_a_client_with_a_certificate_of_the_cluster_is_accepted(platform: Platform, port: int) -> None:
    def knock(how: str) -> str:
        return platform.in_head("python", "-c", KNOCK, str(port), how, cluster=SECURED).strip()

    assert knock("certified") == "accepted"
    assert knock("bare") != "accepted"


def test_the_authoritys_key_is_not_in_rays_pods(platform: Platform) -> None:
    found = platform.in_head("find", "/etc/ray", "-type", "f", cluster=SECURED).split()
    assert sorted(found) == ["/etc/ray/tls/ca.crt", "/etc/ray/tls/tls.crt", "/etc/ray/tls/tls.key"]
