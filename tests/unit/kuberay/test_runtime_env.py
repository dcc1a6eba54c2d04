"""Runtime environments: Ray itself and our rules judge generated ones equally."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray.runtime_env import RuntimeEnv

from kuberay.runtime_env import KEYS, problems_of_runtime_env
from tests.conftest import Compared

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "conda": st.sampled_from(["base", {"dependencies": ["numpy"]}, ["numpy"], 1]),
    "pip": st.sampled_from([["numpy"], {"packages": ["numpy"]}, 1, True]),
    "uv": st.sampled_from([["numpy"], {"packages": ["numpy"]}, 1]),
    "excludes": st.sampled_from([["*.bin"], "*.bin", {}]),
    "working_dir": st.sampled_from(
        [
            *(
                "https://example.com/code.zip",
                "s3://data/code.tar.gz",
                "https://example.com/code",
                "gs://data/code.whl",
            ),
            *("https://example.com/code.zip?version=1", "local:///code", ["a"], 1),
        ]
    ),
    "py_modules": st.sampled_from(
        [["https://example.com/code.zip"], ["s3://data/code.whl", "s3://data/code"], "https://example.com/code.zip", 1]
    ),
    "image_uri": st.just("rayproject/ray:2.60.0"),
    "container": st.just({"image": "rayproject/ray:2.60.0"}),
    "config": st.sampled_from([{"setup_timeout_seconds": seconds} for seconds in (0, -1, -2, 60)]),
    "env_vars": st.just({"LEVEL": "2"}),
}


@pytest.mark.differential
def test_generated_environments_are_judged_equally(compared: Compared) -> None:
    tally: Counter[str] = Counter()

    @given(values=st.fixed_dictionaries({}, optional=VALUES))
    def judge(values: dict[str, Any]) -> None:
        try:
            RuntimeEnv(**values)
            refused = False
        except (ValueError, TypeError):
            refused = True
        problems = list(problems_of_runtime_env(values))
        assert bool(problems) == refused, (values, problems)
        tally["refused" if refused else "accepted"] += 1

    judge()
    compared("Ray's RuntimeEnv", "runtime environments", tally)


def test_the_keys_are_those_of_ray() -> None:
    assert {key for key in RuntimeEnv.known_fields if not key.startswith("_")} == set(KEYS)


def test_a_key_of_a_plugin_is_nobodys_misspelling() -> None:
    assert list(problems_of_runtime_env({"our_scratch_disk": {"gb": 5}})) == []
