"""The real OpenTelemetry Collector, with the configuration that the pods of a stack have."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.logs.collector import NAMES, config_map
from components.logs.manifests import CONFIG_FILE, RAY_FOLDER, STATE
from components.logs.settings import LogsSettings
from local import tools


def otelcol(*arguments: str, log: Path) -> "subprocess.Popen[bytes]":
    """A collector; its own messages go to `log`."""
    environment = {**os.environ, **{variable: variable.lower() for variable in NAMES.values()}}
    command = [str(tools.OTEL_COLLECTOR.program("otelcol")), *arguments]
    with log.open("a") as output:
        return subprocess.Popen(command, env=environment, stdout=output, stderr=output)


def written(folder: Path, settings: Mapping[str, Any]) -> Path:
    """The configuration of a stack for a collector whose folders are in `folder`: Ray's is `ray`.

    The receiver is on this machine, which no stack file may say.
    """
    receiver = settings["endpoint"]
    checked = LogsSettings.model_validate({**settings, "endpoint": f"{receiver.partition(':')[0]}://receiver:4318"})
    text = config_map(checked.model_copy(update={"endpoint": receiver}), "team-a")["data"][CONFIG_FILE]
    file = folder / CONFIG_FILE
    (folder / "state").mkdir(exist_ok=True)
    file.write_text(text.replace(RAY_FOLDER, f"{folder}/ray").replace(STATE, f"{folder}/state"))
    return file
