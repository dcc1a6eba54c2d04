"""The flat Pulumi program: a resource for each body in the file BODIES, with only the required dependencies."""

import json
import os
from pathlib import Path

import pulumi
import pulumi_kubernetes

BODIES = json.loads(Path(os.environ["BODIES"]).read_text())

cluster = pulumi.ResourceOptions(provider=pulumi_kubernetes.Provider("cluster"))
definitions: dict[str, pulumi.Resource] = {}
namespaces: dict[str, pulumi.Resource] = {}
for number, body in enumerate(BODIES):
    metadata, api_version = body["metadata"], body["apiVersion"]
    needs = [
        definitions.get(f"{api_version.partition('/')[0]}/{body['kind']}"),
        namespaces.get(metadata.get("namespace")),
    ]
    resource = pulumi.CustomResource(
        f"kubernetes:{api_version if '/' in api_version else f'core/{api_version}'}:{body['kind']}",
        f"{body['kind']}-{metadata['name']}-{number}",
        body,
        pulumi.ResourceOptions.merge(cluster, pulumi.ResourceOptions(depends_on=[each for each in needs if each])),
    )
    if body["kind"] == "CustomResourceDefinition":
        definitions[f"{body['spec']['group']}/{body['spec']['names']['kind']}"] = resource
    if body["kind"] == "Namespace":
        namespaces[metadata["name"]] = resource
