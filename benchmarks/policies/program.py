"""The Pulumi program that is previewed: an object for each body in the file that BODIES names."""

import json
import os
from pathlib import Path

import pulumi
import pulumi_kubernetes  # noqa: F401 -- says which version of the plugin is meant

for number, body in enumerate(json.loads(Path(os.environ["BODIES"]).read_text())):
    version = body["apiVersion"] if "/" in body["apiVersion"] else f"core/{body['apiVersion']}"
    pulumi.CustomResource(f"kubernetes:{version}:{body['kind']}", f"it-{number}", body)
