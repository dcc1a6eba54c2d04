"""Settings of a Serve config, in Ray's own words. `serve` has the rules for their combinations.

The keys are those of Ray 2.60 (ray, python/ray/serve/schema.py: ServeDeploySchema, and python/ray/serve/config.py).
`tests/unit/ray_service/test_ray_service.py` compares them with the installed Ray.
"""

import difflib
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, WithJsonSchema, model_validator

from core.problems import UNKNOWN_FIELD, Problem, Problems
from core.suggestions import keys_meant
from core.types import NonEmptyText, NotEmpty, ReservedGpus
from kuberay.runtime_env import RuntimeEnvSettings

Whole = Annotated[int, Strict(), Field(ge=0, le=2**31 - 1)]
Positive = Annotated[int, Strict(), Field(ge=1, le=2**31 - 1)]
Amount = Annotated[float, Field(ge=0, le=2**53)]
PositiveAmount = Annotated[float, Field(gt=0, le=2**53)]
Port = Annotated[int, Strict(), Field(ge=1, le=65535)]

_LONGEST_KEY = 100

LogAttribute = Literal[
    "args",
    "asctime",
    "created",
    "exc_info",
    "exc_text",
    "filename",
    "funcName",
    "levelname",
    "levelno",
    "lineno",
    "message",
    "module",
    "msecs",
    "msg",
    "name",
    "pathname",
    "process",
    "processName",
    "relativeCreated",
    "stack_info",
    "taskName",
    "thread",
    "threadName",
]
"""Attributes of Python's log records (ray, python/ray/_common/logging_constants.py: LOGRECORD_STANDARD_ATTRS)."""


class ServeModel(BaseModel):
    """Base of the parts of a Serve config: Ray's spelling, and keys of later versions of Ray.

    Ray ignores unknown keys. So a key that resembles a known one is refused, because it is misspelt.
    """

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _spelled(cls, value: Any) -> Any:
        known = list(cls.model_fields)
        problems = []
        for key in value if isinstance(value, dict) else ():
            near = None if key in known or not isinstance(key, str) else _meant(key, known)
            if near:
                message = f"Ray would ignore key {key!r}: did you mean {near!r}? Known keys: {', '.join(known)}"
                problems.append(Problem((key,), None, message, UNKNOWN_FIELD))
        if problems:
            raise Problems(problems)
        return value


def _meant(key: str, known: list[str]) -> str | None:
    near = keys_meant(key, known) or difflib.get_close_matches(key[:_LONGEST_KEY], known, n=1, cutoff=0.8)
    return near[0] if near else None


class ServeLoggingSettings(ServeModel):
    """The logs of Serve."""

    encoding: Literal["TEXT", "JSON"] = "TEXT"
    """Their format."""

    log_level: Literal["DEBUG", "INFO", "WARN", "WARNING", "ERROR", "FATAL", "CRITICAL", "NOTSET"] = "INFO"
    """Lowest level that is logged."""

    logs_dir: str | None = None
    """Folder of the logs. Default: that of Ray's session."""

    enable_access_log: bool = True
    """Whether each request is logged."""

    additional_log_standard_attrs: tuple[LogAttribute, ...] = ()
    """Further attributes of Python's log records."""


class HttpOptionsSettings(ServeModel):
    """The HTTP proxies. Serve reads these when it starts: a change needs another cluster."""

    host: str = "0.0.0.0"  # noqa: S104 (Ray's default; a Service and NetworkPolicies protect it)
    """Address that they listen on."""

    port: Port = 8000
    """Port that they listen on. It has to be the port `serve` of the head's container."""

    root_path: str = ""
    """Path that a proxy before Serve removes from requests."""

    request_timeout_s: PositiveAmount | None = None
    """Seconds after which a request fails. Default: none."""

    keep_alive_timeout_s: Whole = 5
    """Seconds for which idle connections stay open."""

    ssl_keyfile: str | None = None
    """Path of a private key in the pods, for HTTPS."""

    ssl_certfile: str | None = None
    """Path of its certificate."""

    ssl_keyfile_password: str | None = None
    """Password of the private key."""

    ssl_ca_certs: str | None = None
    """Path of the certificates of authorities, to verify clients."""


class GrpcOptionsSettings(ServeModel):
    """The gRPC proxies."""

    port: Port = 9000
    """Port that they listen on."""

    grpc_servicer_functions: tuple[str, ...] = ()
    """Import paths of the functions `add_..._servicer_to_server`. Default: none, so there is no gRPC."""

    request_timeout_s: PositiveAmount | None = None
    """Seconds after which a request fails. Default: none."""

    enable_reflection: bool = True
    """Whether clients may list the services."""


class TracingSettings(ServeModel):
    """Traces of requests."""

    enabled: bool = False
    """Whether they are exported."""

    exporter_import_path: str = ""
    """Import path of the exporter. Default: into files."""

    sampling_ratio: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Share of the requests."""


def _replicas(value: Any) -> Any:
    # A union would report an error for each of its members.
    if value in ("auto", None) or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**31):
        return value
    raise ValueError(f"{value!r} is not a number of replicas: set a whole number from 1 on, or auto")


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
