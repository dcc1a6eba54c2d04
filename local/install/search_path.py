"""Programs of exactly the pinned version that the PATH has already: they are copied into the cache.

A copy and not a link: the next upgrade of the machine's packages would put another version behind a link, and asking
every program for its version at each start would take a second of it.
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
"""How a program is asked for its version. Others are not looked for: several projects have a program of that name, or
it does not tell its version."""

SECONDS = 10
"""A program that does not answer by then does not count."""


def find(program: str, version: str) -> Path | None:
    """The program on the PATH, where that is of this version (`v1.34.4`), else None.

    A script does not count, nor does a link to a program that starts others (asdf, mise, snap): copied, it would start
    something else tomorrow. So the file behind all links is the one that is asked.
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
