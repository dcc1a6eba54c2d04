"""Programs on the PATH of exactly the pinned version: they are copied into the cache.

They are copied instead of linked: after an upgrade of the machine's packages a link would lead to another version, and
asking every program for its version at each start would take a second.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

QUESTIONS = {
    "etcd": ("--version",),
    "kube-apiserver": ("--version",),
    "kube-controller-manager": ("--version",),
    "kube-scheduler": ("--version",),
    "kubectl": ("version", "--client"),
    "kubelet": ("--version",),
    "kube-proxy": ("--version",),
    "kwok": ("--version",),
    "pulumi": ("version",),
}
"""The arguments that print a program's version. Others are not searched for: several projects have a program of that
name, or it does not print its version."""

SECONDS = 10
"""A program that does not answer within these seconds is ignored."""


def find(program: str, version: str) -> Path | None:
    """The program on the PATH if it has this version (`v1.36.5`), else None.

    Scripts and links to a program that starts others (asdf, mise, snap) are ignored: a copy would start something else
    tomorrow. So the file behind all links is asked.
    """
    found = shutil.which(program)
    if program not in QUESTIONS or found is None:
        return None
    file = Path(found).resolve()
    try:
        with file.open("rb") as content:
            if content.read(2) == b"#!":
                return None
        answer = subprocess.run(
            [file, *QUESTIONS[program]],
            env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    reported = re.search(r"\bv?(\d+\.\d+\.\d+[\w.+-]*)", answer)
    return file if reported and reported[1] == version.removeprefix("v") else None
