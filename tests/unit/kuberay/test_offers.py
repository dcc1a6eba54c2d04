"""What nodes offer: Ray's own reader of a RayCluster and ours judge generated groups equally."""

import copy
import logging
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray.autoscaler._private.kuberay.autoscaling_config import _get_ray_resources_from_group_spec

from kuberay.offers import fits, missing, offered, problems_for_autoscaler
from tests.conftest import Compared

QUANTITIES = st.sampled_from(["0", "1", "500m", "2", "7.5", "16", "1Gi", "64Gi"])
LIMITS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "amd.com/gpu", "nvidia.com/mig-1g.5gb", "example.com/fpga"]),
    QUANTITIES,
)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "num-cpus": st.sampled_from(["0", "1", "8", "1.5", "$CPUS", ""]),
        "num-gpus": st.sampled_from(["0", "1", "8", "one"]),
        "memory": st.sampled_from(["0", "1000000000", "1Gi"]),
        "resources": st.sampled_from(
            [
                "'{}'",
                "'{\"disk\": 2}'",
                '"{\\"disk\\": 2, \\"slots\\": 1}"',
                "'{\"disk\": 0.5}'",
                '{"disk": 1}',
                "'[1]'",
                "",
            ]
        ),
    },
)
OWN = st.dictionaries(st.sampled_from(["CPU", "GPU", "memory", "disk", "slots"]), QUANTITIES)


def group(limits: dict[str, str], requests: dict[str, str], params: dict[str, str], own: dict[str, str]) -> Any:
    container = {"name": "ray", "resources": {"limits": limits, "requests": requests}}
    made = {"groupName": "g", "rayStartParams": params, "template": {"spec": {"containers": [container]}}}
    return {**made, "resources": own} if own else made


@pytest.mark.differential
def test_rays_reader_agrees(compared: Compared) -> None:
    tally: Counter[str] = Counter()

    # KubeRay refuses a group with both (validation.go: validateRayGroupResources).
    @given(limits=LIMITS, requests=LIMITS, given=st.one_of(st.tuples(PARAMS, st.just({})), st.tuples(st.just({}), OWN)))
    def judge(limits: dict[str, str], requests: dict[str, str], given: tuple[dict[str, str], dict[str, str]]) -> None:
        made = group(limits, requests, *given)
        try:
            read: Any = _get_ray_resources_from_group_spec(copy.deepcopy(made), is_head=False)
        except (ValueError, AssertionError):
            read = None
        problems = list(problems_for_autoscaler({"enableInTreeAutoscaling": True, "headGroupSpec": made}))
        assert bool(problems) == (read is None)
        tally["refused" if problems else "accepted"] += 1
        for name in ("CPU", "GPU", "memory", "disk", "slots") if read is not None else ():
            if not known_to_one_alone(name, limits, requests):
                assert (offered(made).get(name) or 0) == (read.get(name) or 0), name

    logging.disable(logging.ERROR)
    judge()
    logging.disable(logging.NOTSET)
    compared("Ray's autoscaler", "what a node offers", tally)


def known_to_one_alone(name: str, limits: dict[str, str], requests: dict[str, str]) -> bool:
    """Whether the operator passes on what the reader does not see, or the reverse: a limit of zero, memory that is only
    requested, slices of a GPU, GPUs of two makers."""
    if name == "GPU":
        return bool(requests) or "nvidia.com/mig-1g.5gb" in limits or {"amd.com/gpu", "nvidia.com/gpu"} <= limits.keys()
    return "0" in (limits.get(name.lower()), requests.get(name.lower())) or (
        name == "memory" and "memory" in requests and "memory" not in limits
    )


def test_a_demand_is_compared_with_the_largest_node() -> None:
    head = offered(group({"cpu": "4", "memory": "8Gi"}, {}, {"num-cpus": "0"}, {}))
    worker = offered(group({"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "2"}, {}, {}, {}))
    assert missing({"CPU": 16, "GPU": 2}, [head, worker]) is None
    assert missing({"CPU": 17}, [head, worker]) == ("CPU", Decimal(16))
    assert missing({"disk": 1}, [head, worker]) == ("disk", Decimal(0))
    assert missing({"node:__internal_head__": 0.001}, [head, worker]) is None  # Ray adds it to the head
    assert not fits({"CPU": 1}, head)


def test_what_only_the_pod_knows_is_enough() -> None:
    assert missing({"CPU": 500}, [offered(group({}, {}, {}, {}))]) is None


def test_the_operator_counts_slices_of_gpus_and_accelerators() -> None:
    assert offered(group({"nvidia.com/mig-2g.10gb": "3"}, {}, {}, {}))["GPU"] == 3
    assert offered(group({"aws.amazon.com/neuroncore": "4"}, {}, {}, {}))["neuron_cores"] == 4
