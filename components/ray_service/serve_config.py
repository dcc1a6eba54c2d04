"""Settings of a Serve config, in Ray's own words. `rules` has the rules for their combinations.

The keys are those of Ray 2.60 (ray, python/ray/serve/schema.py: ServeDeploySchema, and python/ray/serve/config.py).
`tests/unit/ray_service/test_serve_config.py` compares them with the installed Ray.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict, WithJsonSchema

from components.ray_job.settings import ReservedGpus, RuntimeEnvSettings
from components.ray_service.serve_options import (
    Amount,
    GrpcOptionsSettings,
    HttpOptionsSettings,
    Positive,
    PositiveAmount,
    ServeLoggingSettings,
    ServeModel,
    TracingSettings,
    Whole,
)
from core.types import NonEmptyText, NotEmpty


def _replicas(value: Any) -> Any:
    # A union would report an error for each of its members.
    if value in ("auto", None) or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**31):
        return value
    raise ValueError(f"{value!r} is no number of replicas: set a whole number from 1 on, or auto")


class ActorOptionsSettings(ServeModel):
    """What each replica of a deployment needs."""

    runtime_env: RuntimeEnvSettings | None = None
    """Runtime environment of the replicas; `working_dir` and `py_modules` as remote URIs."""

    num_cpus: Amount | None = None
    """CPUs of a replica. Ray's default: 1."""

    num_gpus: Annotated[Amount, ReservedGpus] | None = None
    """GPUs of a replica: a part of one, or whole ones."""

    memory: Amount | None = None
    """Memory of a replica, in bytes."""

    resources: dict[NonEmptyText, Amount] = Field(default_factory=dict)
    """Ray custom resources of a replica."""

    accelerator_type: str | None = None
    """Ray's name of the accelerator, such as `A100`."""

    label_selector: dict[str, str] | None = None
    """Labels of the Ray nodes that a replica may run on."""

    fallback_strategy: tuple[dict[str, Any], ...] | None = None
    """Other options, if no node has these labels."""


class ServeAutoscalingSettings(ServeModel):
    """How Serve scales the replicas of a deployment. Workers follow, if the cluster scales."""

    min_replicas: Whole = 1
    """Fewest replicas; with 0 the first request waits for a replica."""

    initial_replicas: Whole | None = None
    """Replicas at the start. Default: min_replicas."""

    max_replicas: Positive = 1
    """Most replicas. Default with `num_replicas: auto`: 100."""

    target_ongoing_requests: PositiveAmount | None = 2
    """Requests at a time that each replica is scaled for."""

    metrics_interval_s: PositiveAmount = 10
    """Deprecated by Ray: seconds between reports of replicas."""

    look_back_period_s: PositiveAmount = 30
    """Seconds over which the requests are averaged."""

    smoothing_factor: PositiveAmount = 1
    """Deprecated by Ray."""

    upscale_smoothing_factor: PositiveAmount | None = None
    """Deprecated by Ray: set upscaling_factor."""

    downscale_smoothing_factor: PositiveAmount | None = None
    """Deprecated by Ray: set downscaling_factor."""

    upscaling_factor: PositiveAmount | None = None
    """Less than 1: fewer replicas are added at once."""

    downscaling_factor: PositiveAmount | None = None
    """Less than 1: fewer replicas are removed at once."""

    downscale_delay_s: Amount = 600
    """Seconds before replicas are removed."""

    downscale_to_zero_delay_s: Amount | None = None
    """Seconds before the last replica is removed. Default: downscale_delay_s."""

    upscale_delay_s: Amount = 30
    """Seconds before replicas are added."""

    aggregation_function: Literal["mean", "max", "min"] = "mean"
    """How the reports within look_back_period_s are combined."""

    policy: dict[str, Any] | None = None
    """A policy of your own: `policy_function` and `policy_kwargs`."""


class DeploymentSettings(ServeModel):
    """Options of a deployment that override those in the code."""

    name: NonEmptyText
    """Name of the deployment in the application."""

    num_replicas: Annotated[Positive | Literal["auto"] | None, BeforeValidator(_replicas)] = None
    """Number of replicas; `auto`: Serve scales it."""

    max_ongoing_requests: Positive | None = None
    """Most requests at a time in a replica. Ray's default: 5."""

    max_queued_requests: Annotated[int, Strict(), Field(ge=-1, le=2**31 - 1)] | None = None
    """Most requests that wait at each proxy, before it answers 503. Default: -1, no limit."""

    backpressure_config: dict[str, Any] | None = None
    """The answer to requests beyond that: `status_code`, `retry_after_s`."""

    user_config: dict[str, Any] | None = None
    """Values for `reconfigure` of the deployment. A change restarts no replica."""

    autoscaling_config: ServeAutoscalingSettings | None = None
    """How the number of replicas is scaled. Not with a number in num_replicas."""

    graceful_shutdown_wait_loop_s: Amount | None = None
    """Seconds between checks whether a replica that ends still has requests. Ray's default: 2."""

    graceful_shutdown_timeout_s: Amount | None = None
    """Seconds after which a replica ends, although it has requests. Ray's default: 20."""

    health_check_period_s: PositiveAmount | None = None
    """Seconds between health checks. Ray's default: 10."""

    health_check_timeout_s: PositiveAmount | None = None
    """Seconds after which a health check has failed. Ray's default: 30."""

    ray_actor_options: ActorOptionsSettings | None = None
    """What each replica needs."""

    placement_group_bundles: tuple[dict[str, Amount], ...] | None = None
    """Resources that each replica reserves together, such as those of a model on several GPUs. The replica itself runs
    in the first."""

    placement_group_strategy: Literal["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"] | None = None
    """Whether the bundles are on one node."""

    placement_group_bundle_label_selector: tuple[dict[str, str], ...] | None = None
    """Labels of the Ray nodes of each bundle."""

    max_replicas_per_node: Annotated[int, Strict(), Field(ge=1, le=100)] | None = None
    """Most replicas on a Ray node, so that the loss of one node does not end all."""

    logging_config: ServeLoggingSettings | None = None
    """Its logs."""

    request_router_config: dict[str, Any] | None = None
    """How requests are distributed over replicas."""

    gang_scheduling_config: dict[str, Any] | None = None
    """Replicas that start together: `gang_size`, `gang_placement_strategy`, `runtime_failure_policy`."""

    deployment_actors: tuple[dict[str, Any], ...] | None = None
    """Actors that all replicas share."""

    rolling_update_percentage: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the replicas that an update replaces at a time."""

    max_surge_percent: Annotated[int, Strict(), Field(ge=0, le=100)] | None = None
    """Replicas that an update starts before it ends old ones, in percent. Ray's default: 0, it ends old ones first."""


class ApplicationSettings(ServeModel):
    """An application: a graph of deployments with one entry."""

    name: NonEmptyText = "default"
    """Unique name."""

    route_prefix: Annotated[str | None, WithJsonSchema({"type": ["string", "null"]})] = "/"
    """Beginning of the paths of its requests, unique. `null`: it has no HTTP endpoint."""

    import_path: NonEmptyText
    """Where Ray imports it from: `module:application`."""

    runtime_env: RuntimeEnvSettings | None = None
    """Its runtime environment. `working_dir` and `py_modules` as remote URIs, or as `local://` and a folder of the
    image."""

    deployments: tuple[DeploymentSettings, ...] = ()
    """Options that override those in the code."""

    autoscaling_policy: dict[str, Any] | None = None
    """A policy for all of its deployments."""

    args: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the function that builds it."""

    logging_config: ServeLoggingSettings | None = None
    """Its logs."""

    external_scaler_enabled: bool = False
    """True: a program outside of Serve scales its replicas."""


class ServeConfigSettings(ServeModel):
    """A Serve config: what `PUT /api/serve/applications/` of Ray's dashboard takes."""

    applications: Annotated[tuple[ApplicationSettings, ...], NotEmpty]
    """The applications."""

    http_options: HttpOptionsSettings | None = None
    """The HTTP proxies."""

    grpc_options: GrpcOptionsSettings | None = None
    """The gRPC proxies."""

    proxy_location: Literal["EveryNode", "HeadOnly", "Disabled"] = "EveryNode"
    """Pods that take requests: each with a replica, or the head alone. KubeRay finds no pod that serves with
    `Disabled`."""

    logging_config: ServeLoggingSettings | None = None
    """The logs of Serve itself, and of applications without settings of their own."""

    tracing_config: TracingSettings | None = None
    """Traces of requests."""

    controller_options: dict[str, Any] | None = None
    """Options of Serve's controller."""

    target_capacity: Annotated[float, Field(ge=0, le=100)] | None = None
    """Percentage that all numbers of replicas are multiplied with. KubeRay sets it itself during an incremental
    upgrade."""
