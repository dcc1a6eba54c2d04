"""The `docker` section of a cluster launcher file: images, and options of `docker run`."""

from typing import Any

from .reader import Reader
from .secrets import is_noted_secret

_ENV = ("-e", "--env")

_OPTIONS = {
    "--shm-size": "KubeRay gives each pod a /dev/shm of its memory; nothing to do",
    "--gpus": "set gpus; the device plugin hands them to the pod",
    "--runtime": "set runtimeClassName in podTemplate",
    "--ulimit": "raise it in the container runtime of the nodes",
    "--privileged": "set securityContext in podTemplate, if it must be",
    "--cap-add": "set securityContext.capabilities in podTemplate, if it must be",
    "--network": "pods have addresses of their own; nothing to do",
    "--net": "pods have addresses of their own; nothing to do",
    "--volume": "use volumes and volumeMounts",
    "-v": "use volumes and volumeMounts",
    "--mount": "use volumes and volumeMounts",
    "-p": "KubeRay makes the head's Service; nothing to do",
    "--rm": "Kubernetes removes pods; nothing to do",
}


def image_of(docker: Reader, which: str) -> str | None:
    """The image for `head` or `worker`."""
    special, common = docker.text(f"{which}_image"), docker.text("image")
    return special or common


def run_options(docker: Reader, key: str) -> dict[str, str]:
    """Environment variables that options of `docker run` set; the other options are noted."""
    env: dict[str, str] = {}
    for index, part in docker.sequence(key).items():
        text = docker.sequence(key).text(index) or ""
        option, _, value = text.replace("=", " ", 1).partition(" ") if text.startswith("--") else text.partition(" ")
        name, equals, content = value.strip().partition("=")
        if option in _ENV and equals and "$" not in content:
            if not is_noted_secret(name.strip("'\""), content.strip("'\""), part):
                env[name.strip("'\"")] = content.strip("'\"")
        else:
            part.note(
                f"{option} is an option of docker run",
                _OPTIONS.get(option, "say what it does in podTemplate, as a pod's spec has it"),
            )
    return env


def pull_policy(docker: Reader) -> dict[str, Any]:
    """`imagePullPolicy`, if the section sets it; the rest of the section is noted."""
    always = docker.at("pull_before_run")
    docker.at("container_name").note("KubeRay names the containers", "leave it out")
    for key in ("disable_automatic_runtime_detection", "disable_shm_size_detection", "use_podman"):
        docker.at(key).note("the nodes' container runtime runs the pods", "leave it out")
    return {"imagePullPolicy": "Always"} if always.use() is True else {}
