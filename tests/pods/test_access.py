"""A RayCluster shows its status and runs jobs, for users with its token."""

import json
import textwrap
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

import pytest
import yaml

from testbed.pods.platform import CLUSTER, NAMESPACE, SUBMITTER, Platform
from testbed.pods.steps import Steps, until
from tests.pods.jobs import Jobs

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(300, func_only=True)]

NODES = "python -c \"import ray; ray.init(); print('cluster of', len(ray.nodes()))\""

CLIENT = """
import os
os.environ.update({environment!r})
import ray.util
try:
    ray.util.connect("127.0.0.1:10001", connection_retries={retries})
    print("cluster of", len(ray.nodes()))
    ray.util.disconnect()
except ConnectionError as error:
    print("refused:", error)
"""

ASK_KUBERNETES = textwrap.dedent("""
    import json, ssl, sys, urllib.request
    given = json.load(sys.stdin)
    trusted = ssl.create_default_context(cadata=given["ca"])
    for method, path, kind, body in given["requests"]:
        request = urllib.request.Request(f"https://kubernetes.default.svc{path}", method=method)
        request.add_header("Authorization", "Bearer " + given["token"])
        request.add_header("Content-Type", kind)
        try:
            print(urllib.request.urlopen(request, json.dumps(body).encode() if body else None, context=trusted).status)
        except urllib.error.HTTPError as error:
            print(error.code)
""")

TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 (the default path of Kubernetes' clients)

PRIVILEGED = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "privileged", "namespace": NAMESPACE},
    "spec": {"containers": [{"name": "any", "image": "any", "securityContext": {"privileged": True}}]},
}


def test_ray_shows_the_head_and_no_worker(platform: Platform) -> None:
    status = platform.in_head("ray", "status")
    assert "1 headgroup" in status
    assert "no pending nodes" in status
    assert platform.workers() == {}


def test_a_job_runs_only_with_the_token(platform: Platform, steps: Steps) -> None:
    with platform.forwarded(f"{CLUSTER}-head-svc", 8265) as address:
        assert Jobs(address, None).submit(NODES).status == HTTPStatus.UNAUTHORIZED
        assert Jobs(address, "wrong").submit(NODES).status == HTTPStatus.FORBIDDEN
        with steps.step("a job through the dashboard's API"):
            assert "cluster of 1" in Jobs(address, platform.token()).run(NODES)


def test_a_users_rayjob_that_would_never_start_is_refused(platform: Platform) -> None:
    """KubeRay's default mode makes a pod that Pod Security refuses. With Volcano, KubeRay starts none in any mode."""

    def ray_job(**mode: str) -> str:
        spec = {"entrypoint": NODES, "clusterSelector": {"ray.io/cluster": CLUSTER}, **mode}
        metadata = {"name": "submitted", "namespace": NAMESPACE}
        return yaml.safe_dump({"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata, "spec": spec})

    user = f"--as=system:serviceaccount:{NAMESPACE}:{SUBMITTER}"
    assert "set submissionMode: HTTPMode" in platform.refusal("create", user, "-f", "-", given=ray_job())
    http = platform.refusal("create", user, "-f", "-", given=ray_job(submissionMode="HTTPMode"))
    assert "with Volcano, KubeRay starts no RayJob on an existing RayCluster" in http
    assert platform.kubectl("get", "rayjobs", "-A", "-o", "name") == ""


def test_a_client_with_the_token_is_accepted(platform: Platform) -> None:
    client = CLIENT.format(environment={"RAY_AUTH_TOKEN": platform.token()}, retries=6)
    # Ray starts a process for each client, with a time limit that a busy machine may exceed.
    until(lambda: "cluster of 1" in platform.in_head("python", "-c", client), "a client is accepted", pause=3)


def test_a_client_without_the_token_is_refused(platform: Platform) -> None:
    def output(environment: dict[str, str]) -> str:
        return platform.in_head("python", "-c", CLIENT.format(environment=environment, retries=2))

    wrong = {"RAY_AUTH_TOKEN": "wrong"}
    none = {"RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN": ""}
    # Both at the same time, because Ray lets each of them wait. It reports only a timeout; the test before is the
    # same script with the token.
    with ThreadPoolExecutor() as executor:
        for answer in executor.map(output, [wrong, none]):
            assert "refused: ray client connection timeout" in answer
            assert "cluster of" not in answer


def test_a_job_has_no_token_of_kubernetes(platform: Platform) -> None:
    with platform.forwarded(f"{CLUSTER}-head-svc", 8265) as address:
        found = Jobs(address, platform.token()).run(f"test ! -e {TOKEN_FOLDER} && echo none")
    assert "none" in found


def test_the_heads_account_may_not_create_a_privileged_pod_or_read_a_secret(platform: Platform) -> None:
    """Requests like those of a job that has obtained the autoscaler's token."""
    token, ca = (
        platform.in_head("cat", f"{TOKEN_FOLDER}/{name}", container="autoscaler") for name in ("token", "ca.crt")
    )
    core, head = f"/api/v1/namespaces/{NAMESPACE}", platform.head()
    privileged = {"spec": {"containers": [{"name": "ray-head", "securityContext": {"privileged": True}}]}}
    json_, patch = "application/json", "application/strategic-merge-patch+json"
    asked = [
        (HTTPStatus.OK, ("GET", f"{core}/pods", json_, None)),  # the token is valid
        (HTTPStatus.FORBIDDEN, ("GET", f"{core}/secrets", json_, None)),
        (HTTPStatus.FORBIDDEN, ("GET", f"{core}/secrets/{CLUSTER}", json_, None)),
        (HTTPStatus.FORBIDDEN, ("POST", f"{core}/pods", json_, PRIVILEGED)),
        (HTTPStatus.UNPROCESSABLE_ENTITY, ("PATCH", f"{core}/pods/{head}", patch, privileged)),
    ]
    given = json.dumps({"token": token, "ca": ca, "requests": [request for _, request in asked]})
    answers = platform.in_head("python", "-c", ASK_KUBERNETES, given=given).split()
    assert list(map(int, answers)) == [expected for expected, _ in asked]


def test_a_privileged_pod_is_refused_for_every_user(platform: Platform) -> None:
    refused = platform.refusal("create", "-f", "-", given=yaml.safe_dump(PRIVILEGED))
    assert 'violates PodSecurity "restricted' in refused
