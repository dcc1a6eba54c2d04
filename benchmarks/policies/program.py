"""The Pulumi program of the preview: a resource for each body in the file BODIES."""

import json
import os
from pathlib import Path

import pulumi
import pulumi_kubernetes  # noqa: F401 -- determines the version of the plugin

for number, body in enumerate(json.loads(Path(os.environ["BODIES"]).read_text())):
    version = body["apiVersion"] if "/" in body["apiVersion"] else f"core/{body['apiVersion']}"
    pulumi.CustomResource(f"kubernetes:{version}:{body['kind']}", f"it-{number}", body)
