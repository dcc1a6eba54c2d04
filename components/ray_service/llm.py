"""A language model behind OpenAI's API, by Ray Serve LLM and vLLM: its settings, and what they become. Pure functions.

The keys of `args` are those of Ray 2.60 (python/ray/llm/_internal/serve/core/configs/llm_config.py: LLMConfig;
core/ingress/builder.py: LLMServingArgs).
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, Strict
from pydantic.alias_generators import to_snake

from components.external_cluster.settings import SecretKeySettings
from components.ray_cluster.settings import ClusterTemplateSettings, Variant, WorkersSettings
from components.storage.settings import StorageMountSettings
from core.nodes import PoolName
from core.problems import Path, Problem
from core.types import DnsLabel, NonEmptyText, Settings
from kuberay.serve_config import ApplicationSettings, ServeConfigSettings

BUILDER = "ray.serve.llm:build_openai_app"
"""Ray's function that makes the application with OpenAI's API."""

MODELS = "/models"
"""Where the cache of models is mounted."""

_TOKEN_FOLDER, _TOKEN_VOLUME = "/etc/ray-platform/hugging-face", "hugging-face-token"

TOKEN_PATH = "HF_TOKEN_PATH"  # noqa: S105 (a variable)
"""Variable with the file that has the token (huggingface_hub, constants.py)."""

Accelerator = Literal[
    "A100",
    "A100-40G",
    "A100-80G",
    "A10G",
    "B200",
    "B300",
    "GB200",
    "GB300",
    "H100",
    "H20",
    "H200",
    "K80",
    "L4",
    "L40S",
    "P100",
    "P4",
    "RTX-PRO-6000",
    "T4",
    "V100",
]
"""NVIDIA's GPUs by Ray's names (python/ray/util/accelerators/accelerators.py). Ray refuses other names."""

Gpus = Annotated[int, Strict(), Field(ge=1, le=64)]
Count = Annotated[int, Strict(), Field(ge=1, le=1000)]


def _in_a_cloud(uri: str) -> str:
    if re.fullmatch(r"(s3|gs|abfss|azure)://[^\s/]+(/\S*)?", uri):
        return uri
    raise ValueError(
        f"{uri!r} is not a URI of S3 (s3://), Google Cloud (gs://) or Azure (abfss://, azure://): Ray loads adapters "
        "from these alone, copy them there"
    )


class LoraSettings(Settings):
    """Adapters (LoRA) of a model. Replicas load one when a client asks for `MODEL:ADAPTER`."""

    path: Annotated[str, AfterValidator(_in_a_cloud)]
    """Where their folders are, one for each adapter: a URI of S3, Google Cloud Storage or Azure Storage. Replicas read
    it with the rights of their pods."""

    max_adapters: Count = 16
    """Most adapters that a replica keeps loaded."""


class LanguageModelSettings(Settings):
    """A language model with OpenAI's API."""

    model: NonEmptyText
    """Name of the model for clients: `model` of their requests."""

    source: NonEmptyText | None = None
    """Where its weights are: a repository of Hugging Face, a URI (`s3://`, `gs://`), or a folder of the image or of
    shared storage. Default: `model`."""

    tensor_parallel_size: Gpus = 1
    """GPUs of a replica, over which vLLM spreads the model; all on one node."""

    replicas: Count = 1
    """Replicas; with `maxReplicas` the fewest."""

    max_replicas: Count | None = None
    """Most replicas: Serve scales them with the requests, and the autoscaler their workers. Default: `replicas`."""

    target_ongoing_requests: Count = 32
    """With `maxReplicas`: requests that a replica works on at a time, on average, before Serve adds another."""

    accelerator_type: Accelerator | None = None
    """Ray's name of the GPUs. A replica then starts only on GPUs that Ray finds to be these. Default: any GPU of the
    workers."""

    lora: LoraSettings | None = None
    """Adapters of the model. Default: none."""

    engine_kwargs: dict[NonEmptyText, Any] = Field(default_factory=dict)
    """Further settings of vLLM in its own words, such as `max_model_len`. Neither Ray nor `check` knows them: a wrong
    one is an error of the replica."""

    @property
    def most(self) -> int:
        """Most replicas at a time."""
        return self.max_replicas or self.replicas


class LlmSettings(LanguageModelSettings):
    """A language model with OpenAI's API. It becomes the Serve config and the workers of the service: one worker for
    each replica, with the replica's GPUs."""

    pool: PoolName
    """Pool of `nodes` whose nodes run the replicas."""

    cache: DnsLabel | None = None
    """Name of a storage of the tenant for models. It is HF_HOME of head and workers, so that each model is downloaded
    once. Default: each pod downloads it."""

    hugging_face_token: SecretKeySettings | None = None
    """Key of a Secret with the token for the model hub, as a file of the pods. Default: none."""


def serve_config_of(llm: LanguageModelSettings) -> ServeConfigSettings:
    # Ray Serve LLM's own target is 1e9, with which no replica is ever added (core/server/builder.py).
    scaling = {"min_replicas": llm.replicas, "max_replicas": llm.most}
    scaled = {"autoscaling_config": {**scaling, "target_ongoing_requests": llm.target_ongoing_requests}}
    adapters, engine = {}, {"tensor_parallel_size": llm.tensor_parallel_size}
    if llm.lora:
        found = {"dynamic_lora_loading_path": llm.lora.path, "max_num_adapters_per_replica": llm.lora.max_adapters}
        adapters, engine["enable_lora"] = {"lora_config": found}, True
    config: dict[str, Any] = {
        "model_loading_config": {"model_id": llm.model, "model_source": llm.source or llm.model},
        **({"accelerator_type": llm.accelerator_type} if llm.accelerator_type else {}),
        "deployment_config": scaled if llm.max_replicas else {"num_replicas": llm.replicas},
        **adapters,
        "engine_kwargs": {**engine, **llm.engine_kwargs},
    }
    args: dict[str, Any] = {"llm_configs": [config]}
    if llm.replicas > 1:
        # Requests pass it, and Ray starts a single one: the loss of its worker would stop all.
        args["ingress_deployment_config"] = {"num_replicas": 2, "max_replicas_per_node": 1}
    application = ApplicationSettings(name="llm", route_prefix="/", import_path=BUILDER, args=args)
    return ServeConfigSettings(applications=(application,))


def cluster_of(llm: LlmSettings, cluster: ClusterTemplateSettings) -> ClusterTemplateSettings:
    """The cluster of the service with the model's workers, cache and token."""
    size = Variant(gpus=llm.tensor_parallel_size, min_replicas=llm.replicas, max_replicas=llm.most)
    update: dict[str, Any] = {"workers": (WorkersSettings(pool=llm.pool, variants=(size,)),)}
    if llm.cache:
        cache = StorageMountSettings(name=llm.cache, mount_path=MODELS, hf_home=True)
        update["storage"] = (*cluster.storage, cache)
    if token := llm.hugging_face_token:
        items = [{"key": token.key, "path": "token"}]
        update |= {
            "volumes": (
                *cluster.volumes,
                {"name": _TOKEN_VOLUME, "secret": {"secretName": token.name, "items": items}},
            ),
            "volume_mounts": (
                *cluster.volume_mounts,
                {"name": _TOKEN_VOLUME, "mountPath": _TOKEN_FOLDER, "readOnly": True},
            ),
            "env": {TOKEN_PATH: f"{_TOKEN_FOLDER}/token", **cluster.env},
        }
    return cluster.model_copy(update=update)


def problems_of_model(llm: LanguageModelSettings) -> Iterator[Problem]:
    """Conflicts between its settings; paths in those of what has `llm`."""
    if llm.max_replicas is not None and llm.max_replicas < llm.replicas:
        message = f"replicas {llm.replicas} is more than maxReplicas {llm.max_replicas}: lower it, or raise maxReplicas"
        yield Problem(("llm", "replicas"), llm.replicas, message, "replica-bounds")
    if "tensor_parallel_size" in llm.engine_kwargs:
        message = "the size of the workers follows from tensorParallelSize: set that instead"
        value = llm.engine_kwargs["tensor_parallel_size"]
        yield Problem(("llm", "engineKwargs", "tensor_parallel_size"), value, message, "said-twice")
    if llm.engine_kwargs.get("pipeline_parallel_size", 1) not in (None, 1):
        message = "a replica is on one worker: remove it, and write the Serve config yourself (serveConfigV2) for more"
        value = llm.engine_kwargs["pipeline_parallel_size"]
        yield Problem(("llm", "engineKwargs", "pipeline_parallel_size"), value, message, "service-llm")


def problems_of_llm(llm: LlmSettings, cluster: ClusterTemplateSettings) -> Iterator[Problem]:
    """Conflicts between settings; paths in the service's settings."""
    yield from problems_of_model(llm)
    for field, key in (("workers", "workers"), ("worker_groups", "workerGroups")):
        if getattr(cluster, field):
            message = (
                "llm makes the workers, one for each replica: remove it, or write the Serve config (serveConfigV2)"
            )
            yield Problem(("cluster", key), None, message, "service-llm")
    if llm.cache and any(each.hf_home for each in cluster.storage):
        message = "a storage of the cluster is HF_HOME already: remove cache, or hfHome there"
        yield Problem(("llm", "cache"), llm.cache, message, "hf-home")


_OF_WORKERS = {"gpus": "tensorParallelSize", "minReplicas": "replicas", "maxReplicas": "maxReplicas", "pool": "pool"}


def llm_setting_at(cluster: ClusterTemplateSettings, path: Path) -> Path:
    """The path in the service's settings for one in its cluster, which `cluster_of` may have added. `cluster`: without
    what it adds."""
    match path:
        case ("workers", *_, str(key)):
            return ("llm", _OF_WORKERS.get(key, "tensorParallelSize"))
        case ("workers", *_):
            return ("llm",)
        case ("storage", int(index), *_) if index >= len(cluster.storage):
            return ("llm", "cache")
        case ("volumes" | "volumeMounts", int(index), *_) if index >= len(getattr(cluster, to_snake(str(path[0])))):
            return ("llm", "huggingFaceToken")
    return ("cluster", *path)
