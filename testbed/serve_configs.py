"""Serve configs that Ray accepts and refuses. Ray's own schema judges them in tests/pods/test_ray_services.py."""

from typing import Any

Config = dict[str, Any]


def one(*deployments: Config, **application: Any) -> Config:
    """A Serve config with one application."""
    return {"applications": [{"import_path": "chat:app", "deployments": list(deployments), **application}]}


def deployment(**options: Any) -> Config:
    """A Serve config whose only deployment has these options."""
    return one({"name": "Chat", **options})


_GANG = {"gang_size": 2}
_BUNDLE = {"CPU": 1, "GPU": 1}

ACCEPTED: dict[str, Config] = {
    "the shortest": {"applications": [{"import_path": "chat:app"}]},
    "a class in a package": one(import_path="package.chat.app"),
    "no HTTP endpoint": one(route_prefix=None),
    "a folder of the image": one(runtime_env={"working_dir": "local:///code"}),
    "an archive": one(runtime_env={"working_dir": "https://example.com/a.zip", "py_modules": ["s3://bucket/m.zip"]}),
    "a number of replicas": deployment(num_replicas=3, max_queued_requests=-1, max_replicas_per_node=1),
    "scaled replicas": deployment(
        num_replicas="auto", autoscaling_config={"min_replicas": 0, "initial_replicas": 2, "max_replicas": 4}
    ),
    "scaled replicas without their most": deployment(
        num_replicas="auto", autoscaling_config={"min_replicas": 2, "initial_replicas": 100}
    ),
    "gangs": deployment(num_replicas=4, gang_scheduling_config=_GANG),
    "gangs that scale": deployment(
        num_replicas="auto", autoscaling_config={"min_replicas": 0, "max_replicas": 4}, gang_scheduling_config=_GANG
    ),
    "gangs without a number": deployment(gang_scheduling_config=_GANG),
    "labels of nodes": deployment(
        ray_actor_options={"label_selector": {"example.com/zone": "!in(a, b)", "gpu": "(A100,H100)", "spot": ""}}
    ),
    "attributes of logs": one(logging_config={"additional_log_standard_attrs": ["name", "taskName"]}),
    "a part of a GPU": deployment(ray_actor_options={"num_gpus": 0.5}),
    "bundles": deployment(
        placement_group_bundles=[_BUNDLE, _BUNDLE],
        placement_group_strategy="PACK",
        placement_group_bundle_label_selector=[{"zone": "a"}],
    ),
    "options of all": {
        **one(args={"model": "small"}, logging_config={"encoding": "JSON", "log_level": "DEBUG"}),
        "proxy_location": "HeadOnly",
        "http_options": {"port": 8000, "request_timeout_s": 60},
        "grpc_options": {"port": 9000, "grpc_servicer_functions": ["chat_pb2_grpc.add_ChatServicer_to_server"]},
        "target_capacity": 50,
    },
}

REFUSED: dict[str, Config] = {
    "two applications of one name": {
        "applications": [
            {"import_path": "a:app", "name": "chat"},
            {"import_path": "b:app", "name": "chat", "route_prefix": "/b"},
        ]
    },
    "two applications of one path": {
        "applications": [{"import_path": "a:app", "name": "a"}, {"import_path": "b:app", "name": "b"}]
    },
    "a module alone": one(import_path="chat"),
    "a file": one(import_path="chat:app:main"),
    "nothing after the colon": one(import_path="chat:"),
    "a folder of this machine": one(runtime_env={"working_dir": "./code"}),
    "a module of this machine": one(runtime_env={"py_modules": ["/code/module"]}),
    "a folder of a deployment": deployment(ray_actor_options={"runtime_env": {"working_dir": "code"}}),
    "the port of an application": one(port=9000),
    "the host of an application": one(host="0.0.0.0"),  # noqa: S104 (nobody listens)
    "a number of replicas that is scaled": deployment(num_replicas=2, autoscaling_config={"max_replicas": 4}),
    "any number of replicas": deployment(num_replicas="many"),
    "no replicas": deployment(num_replicas=0),
    "no waiting requests": deployment(max_queued_requests=0),
    "replicas of each node and bundles": deployment(max_replicas_per_node=1, placement_group_bundles=[_BUNDLE]),
    "replicas of each node and a gang": deployment(
        num_replicas=2, max_replicas_per_node=1, gang_scheduling_config=_GANG
    ),
    "a strategy beside that of a gang": deployment(
        num_replicas=2, placement_group_strategy="PACK", gang_scheduling_config=_GANG
    ),
    "a part of a gang": deployment(num_replicas=3, gang_scheduling_config=_GANG),
    "a part of a gang at least": deployment(
        num_replicas="auto", autoscaling_config={"min_replicas": 1, "max_replicas": 4}, gang_scheduling_config=_GANG
    ),
    "the name of a label": deployment(ray_actor_options={"label_selector": {"a b": "c"}}),
    "the value of a label": deployment(ray_actor_options={"label_selector": {"zone": "!"}}),
    "an attribute of logs": one(logging_config={"additional_log_standard_attrs": ["nonsense"]}),
    "labels of no bundle": deployment(placement_group_bundle_label_selector=[{"zone": "a"}]),
    "labels of other bundles": deployment(
        placement_group_bundles=[_BUNDLE] * 3, placement_group_bundle_label_selector=[{"zone": "a"}, {"zone": "b"}]
    ),
    "an external scaler of what Serve scales": one(
        {"name": "Chat", "num_replicas": "auto"}, external_scaler_enabled=True
    ),
    "a share of more than all": {**one(), "target_capacity": 101},
    "a level of logs": one(logging_config={"log_level": "LOUD"}),
    "a negative number of CPUs": deployment(ray_actor_options={"num_cpus": -1}),
    "an update of nothing at a time": deployment(rolling_update_percentage=0),
}

REFUSED_LATER: dict[str, Config] = {
    "a path without its first slash": one(route_prefix="chat"),
    "a path that ends with a slash": one(route_prefix="/chat/"),
    "a path with a wildcard": one(route_prefix="/{model}"),
    "fewer replicas at most": deployment(autoscaling_config={"min_replicas": 4, "max_replicas": 2}),
    "more replicas at first": deployment(autoscaling_config={"initial_replicas": 4, "max_replicas": 2}),
    "more replicas than auto has": deployment(num_replicas="auto", autoscaling_config={"min_replicas": 101}),
    "one and a half GPUs": deployment(ray_actor_options={"num_gpus": 1.5}),
}
"""What Ray's schema lets pass, and what fails when Serve deploys it (ray, python/ray/serve/config.py:
AutoscalingConfig; _private/utils.py: validate_route_prefix; python/ray/_raylet.pyx: prepare_resources)."""
