"""Runtime environments: Ray itself and our rules judge generated ones equally."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray.runtime_env import RuntimeEnv

from components.ray_job.runtime_env import KEYS, problems_of_runtime_env
from components.ray_job.settings import RuntimeEnvSettings
from tests.conftest import Compared

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "conda": st.sampled_from(["base", {"dependencies": ["numpy"]}, ["numpy"], 1]),
    "pip": st.sampled_from([["numpy"], {"packages": ["numpy"]}, 1, True]),
    "uv": st.sampled_from([["numpy"], {"packages": ["numpy"]}, 1]),
    "excludes": st.sampled_from([["*.bin"], "*.bin", {}]),
    "working_dir": st.sampled_from(["https://example.com/code.zip", ["a"], 1]),
    "py_modules": st.sampled_from([["https://example.com/code.zip"], "https://example.com/code.zip", 1]),
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
        problems = list(problems_of_runtime_env(RuntimeEnvSettings.model_validate(values)))
        assert bool(problems) == refused, (values, problems)
        tally["refused" if refused else "accepted"] += 1

    judge()
    compared("Ray's RuntimeEnv", "runtime environments", tally)


def test_the_keys_are_those_of_ray() -> None:
    assert {key for key in RuntimeEnv.known_fields if not key.startswith("_")} == set(KEYS)


def test_a_key_of_a_plugin_is_nobodys_misspelling() -> None:
    assert list(problems_of_runtime_env(RuntimeEnvSettings.model_validate({"our_scratch_disk": {"gb": 5}}))) == []
