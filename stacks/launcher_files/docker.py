"""Converts the launcher's settings of Docker into images, an image pull policy and environment variables."""

import shlex
from typing import Any

from core.problems import Path
from stacks.launcher_files.reader import Reader, is_noted_secret

_ENV = ("-e", "--env")

_ALWAYS_SO = {"--shm-size", "--network", "--net", "-p", "--publish", "--rm"}
"""Options that pods need not set: each has a /dev/shm of its memory and an address, and is removed after its end, and
KubeRay creates the head's Service."""

_OPTIONS = {
    "--gpus": "set gpus; the device plugin passes them to the pod",
    "--runtime": "set runtimeClassName in podTemplate",
    "--ulimit": "raise it in the container runtime of the nodes",
    "--privileged": "set securityContext in podTemplate, if it is necessary",
    "--cap-add": "set securityContext.capabilities in podTemplate, if it is necessary",
    "--volume": "use volumes and volumeMounts",
    "-v": "use volumes and volumeMounts",
    "--mount": "use volumes and volumeMounts",
}


def image_of(docker: Reader, which: str) -> str | None:
    special, common = docker.text(f"{which}_image"), docker.text("image")
    return special or common


def run_options(docker: Reader, key: str, of: Path = ()) -> dict[str, str]:
    """Environment variables that options of `docker run` set; the other options are noted. `of`: the place of the pods'
    settings in the cluster.

    The launcher joins all texts with spaces (ray/autoscaler/_private/docker.py: docker_start_cmds).
    """
    env: dict[str, str] = {}
    for option, value, part in _options(docker.sequence(key)):
        name, equals, content = value.partition("=")
        if option in _ALWAYS_SO:
            continue
        if option not in _ENV:
            part.note(
                f"{option} is an option of docker run",
                _OPTIONS.get(option, "set its effect in podTemplate, as in a pod's spec"),
            )
        elif not equals or "$" in content:
            why = f"{name} gets its value on the machine where the launcher runs"
            part.note(why, "set it in env", (*of, "env", name), ("env", name))
        elif not is_noted_secret(name, content, part):
            env[name] = content
    return env


def _options(texts: Reader) -> list[tuple[str, str, Reader]]:
    """The options of `docker run`, each with its value and the text that begins it."""
    found: list[tuple[str, str, Reader]] = []
    for index, part in texts.items():
        text = texts.text(index) or ""
        try:
            words = shlex.split(text)
        except ValueError:
            part.note("a quote is not closed", "correct it")
            continue
        for word in words:
            if word.startswith("--"):
                option, _, value = word.partition("=")
                found.append((option, value, part))
            elif word.startswith("-"):
                found.append((word[:2], word[2:].removeprefix("="), part))
            elif found and not found[-1][1]:
                found[-1] = (found[-1][0], word, found[-1][2])
            else:
                part.note("it is not an option of docker run", "remove it")
    return found


def pull_policy(docker: Reader) -> dict[str, Any]:
    """`imagePullPolicy`, if the section sets it; the rest of the section is noted."""
    always = docker.at("pull_before_run")
    docker.at("container_name").note("KubeRay names the containers", "remove it")
    for key in ("disable_automatic_runtime_detection", "disable_shm_size_detection", "use_podman"):
        docker.at(key).note("the nodes' container runtime runs the pods", "remove it")
    return {"imagePullPolicy": "Always"} if always.use() is True else {}
