"""What a person may write for an amount, a name, a time or a version."""

import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity
from pydantic import TypeAdapter, ValidationError

from core.quantities import NotAQuantityError, amount, canonical
from core.secrets import is_secret
from core.types import Duration, Env, Gpus, Image, Memory, Quantity, QuantityOrZero, Replicas, Version, seconds

NUMBERS = st.one_of(
    st.integers(-(10**12), 10**12).map(str),
    st.decimals(-1000, 1000, places=3).map(str),
    st.sampled_from(["1.", ".5", "+3", "-0", "007"]),
)
SUFFIXES = st.sampled_from(["", *"numkMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E3", "e-3", "e+3"])


@settings(max_examples=500, derandomize=True)
@given(NUMBERS, SUFFIXES)
def test_quantities_are_read_as_the_kubernetes_client_reads_them(number: str, suffix: str) -> None:
    assert amount(number + suffix) == Decimal(parse_quantity(number + suffix))


@pytest.mark.parametrize(
    ("text", "written"),
    [("0", "0"), ("8", "8"), ("1.5", "1500m"), ("252.50", "252500m"), ("64000", "64k"), ("4000Gi", "4294967296k")],
)
def test_an_amount_is_written_as_kubernetes_writes_a_number_back(text: str, written: str) -> None:
    assert canonical(amount(text)) == written


@pytest.mark.parametrize(
    "text", ["4GB", "", "Gi", "1 Gi", "1_000", "inf", "nan", "1e", "1ee3", "1i", "\u0661", "1Gi\n", "0x10"]
)
def test_what_the_api_server_would_not_take_for_a_quantity_is_refused(text: str) -> None:
    """The Python client takes some of these, as Python's own numbers."""
    with pytest.raises(
        NotAQuantityError, match=r"is not a Kubernetes quantity[:;] (did you mean '|write for example 8, 500m or 64Gi)"
    ):
        amount(text)


def refusal(kind: Any, value: Any) -> str:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(kind).validate_python(value)
    [error] = refused.value.errors()
    return error["msg"].removeprefix("Value error, ")


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (Quantity, "4GB", "'4GB' is not a Kubernetes quantity"),
        (Quantity, "-1", "'-1' is less than zero"),
        (Quantity, 0, "'0' is not more than zero"),
        (Quantity, "0m", "'0m' is not more than zero"),
        (Quantity, float("nan"), "'nan' is not a Kubernetes quantity"),
        (Quantity, "16Ei", "'16Ei' is larger than the maximum of Kubernetes"),
        (Quantity, 10**30, "a number of more than 19 digits is too large"),
        (Quantity, True, "Input should be a valid string"),
        (QuantityOrZero, -1, "'-1' is less than zero"),
        (Memory, 16, "'16' is less than 1Mi, and memory is in bytes: did you mean '16Gi'?"),
        (Memory, "400m", "'400m' is less than 1Mi"),
        (Gpus, 0.5, "Input should be a valid integer"),
        (Gpus, 65, "Input should be less than or equal to 64"),
        (Replicas, -1, "Input should be greater than or equal to 0"),
        (Replicas, "3", "Input should be a valid integer"),
        (Replicas, True, "Input should be a valid integer"),
        (Replicas, float("nan"), "Input should be a valid integer"),
        (Replicas, 10**9, "Input should be less than or equal to 150000"),
        (Version, "", "'' is not a version of three numbers such as 2.60.0"),
        (Version, "latest", "'latest' is not a version of three numbers"),
        (Version, 2.6, "'2.6' is not a version of three numbers"),
        (Version, "2.60.0\n", "'2.60.0\\n' is not a version of three numbers"),
        (Version, "\u0662.60.0", "is not a version of three numbers"),
        (Image, "ray:2.60.0; reboot", "'ray:2.60.0; reboot' is not an image reference"),
        (Duration, "5 minutes", "'5 minutes' is not a duration such as 90s"),
        (Duration, "9999999h", "'9999999h' is longer than the maximum of KubeRay"),
        (
            Env,
            {"HF_TOKEN": "hf_x"},
            "HF_TOKEN: 'HF_TOKEN' looks like a secret, and a stack file is plain text: keep it in",
        ),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_what_may_be(kind: Any, value: Any, message: str) -> None:
    assert message in refusal(kind, value)


def test_a_duration_is_in_seconds() -> None:
    assert [seconds(text) for text in ("90s", "5m", "1h30m")] == [90, 300, 5400]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_TOKEN", "hf_x"),
        ("DB_PASSWORD", "x"),
        ("password", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("WANDB_API_KEY", "x"),
        ("AZURE_STORAGE_CONNECTION_STRING", "x"),
        ("CACHE", "redis://:pass@cache:6379"),
        ("CACHE", "redis://:%40pass@cache:6379"),
        ("PEM", "-----BEGIN RSA PRIVATE KEY-----\nx"),
        ("ANY", f"hf_{'aB' * 17}"),
        ("ANY", f"--token=ghp_{'a1' * 18}"),
        ("ANY", f"sk-ant-api03-{'a1_-' * 12}"),
        ("ANY", f"AKIA{'ABCD2345' * 2}"),
    ],
)
def test_secrets_are_known_by_their_names_and_values(name: str, value: str) -> None:
    assert is_secret(name, value)
    assert value not in refusal(Env, {name: value}).replace(repr(name), "").split()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKENIZERS_PARALLELISM", "false"),
        ("MAX_TOKENS", "4096"),
        ("HF_TOKEN_PATH", "/secrets/token"),
        ("RAY_ENABLE_K8S_TOKEN_AUTH", "true"),
        ("RAY_AUTH_MODE", "token"),
        ("DISABLE_TOKEN", "1"),
        ("HF_TOKEN", "$(TEAM_TOKEN)"),
        ("KEY", "x"),
        ("MAX_TOKEN_LENGTH", "4096"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/var/secrets/key.json"),
        ("MODEL", "task-sk-learn"),
        ("DIGEST", "sha256:" + "0a" * 32),
        ("CACHE", "redis://cache:6379/0"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/key"),
        *(("CACHE", f"redis://user:{it}@cache:6379") for it in ("$PASSWORD", "$(P)", "<password>", "{password}", "%s")),
    ],
)
def test_what_is_only_about_secrets_is_none(name: str, value: str) -> None:
    assert not is_secret(name, value)


def test_settings_do_not_wait_for_the_kubernetes_client() -> None:
    """It takes a third of a second to import, more than the check of a stack file."""
    imports = "import sys, components.ray_cluster.manifests; sys.exit('kubernetes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", imports], check=False).returncode == 0
