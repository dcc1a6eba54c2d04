"""Queues for tests."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from components.queues.settings import Queue, QueueSettings
from core.nodes import NodePool

POOL = NodePool(pool="a100", count=4, cpu="64", memory="1000Gi", gpus=8, gpu_product="NVIDIA-A100-SXM4-80GB")


def queue(name: str, *namespaces: str, **settings: Any) -> Queue:
    """A queue with its settings of a stack file."""
    return Queue(name, QueueSettings.model_validate(settings, by_alias=True, by_name=False), namespaces, (name,))


@st.composite
def amounts(draw: st.DrawFn) -> Mapping[str, Any]:
    """Guarantee, deserved and capability of GPUs and CPUs, in order."""
    found: dict[str, dict[str, Any]] = {"guarantee": {}, "deserved": {}, "capability": {}}
    for resource in draw(st.sets(st.sampled_from(["gpus", "cpu"]))):
        least = 0 if resource == "gpus" else 1
        for part, number in zip(
            found, sorted(draw(st.lists(st.integers(least, 9), min_size=3, max_size=3))), strict=True
        ):
            found[part][resource] = number
    return {part: values for part, values in found.items() if values}


@st.composite
def trees(draw: st.DrawFn, most: int = 5) -> list[Queue]:
    """Queues, each with an earlier one as its parent, or without a parent."""
    found: list[Queue] = []
    for index in range(draw(st.integers(1, most))):
        parent = draw(st.sampled_from([None, *(each.name for each in found)]))
        settings = {**draw(amounts()), **({"parent": parent} if parent else {})}
        found.append(queue(f"q{index}", "team-a", **settings))
    return found
