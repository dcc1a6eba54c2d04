"""Secrets that people write into jobs do not get into records."""

import pytest

from components.payloads.run_history.redaction import Redaction
from tests.unit.run_history.api import REDACTION

REDACT = Redaction(**REDACTION)


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("python train.py --epochs 3", "python train.py --epochs 3"),
        ("HF_TOKEN=hunter2 python train.py", "HF_TOKEN=*** python train.py"),
        ("bash -c 'API_KEY=hunter2  python x.py'", "bash -c 'API_KEY=***  python x.py'"),
        ("x --api-key=hunter2 --api-key hunter2 --verbose", "x --api-key=*** --api-key *** --verbose"),
        ("x --password --verbose", "x --password --verbose"),
        ("x --password='hunter2 and  more' --verbose", "x --password='***' --verbose"),
        ('x --password "hunter2 and more" y', 'x --password "***" y'),
        ("bash -c \"HF_TOKEN='hunter2 more' x\"", "bash -c \"HF_TOKEN='***' x\""),
        ('x --config \'{"api_key": "hunter2", "lr": "1"}\'', 'x --config \'{"api_key": "***", "lr": "1"}\''),
        ("x --token-file /run/token", "x --token-file /run/token"),
        ("x s3://bob:hunter2@host/path", "x s3://***@host/path"),
        ('curl -H "Authorization: Bearer hunter2" url', 'curl -H "Authorization: Bearer ***" url'),
        ("bash -c \"curl -H 'X-Api-Key:hunter2 ' url\"", "bash -c \"curl -H 'X-Api-Key:*** ' url\""),
        ("curl -H 'X-Auth-Token: Token hunter2' url", "curl -H 'X-Auth-Token: ***' url"),
        ("curl -H X-Auth-Token:hunter2 http://host:80", "curl -H X-Auth-Token:*** http://host:80"),
        ('curl -H "Accept: text/html" url', 'curl -H "Accept: text/html" url'),
    ],
)
def test_a_command_keeps_everything_but_secrets(command: str, kept: str) -> None:
    assert REDACT.command(command) == kept


def test_a_runtime_environment_keeps_names_and_not_the_values_of_secrets() -> None:
    text = """
    env_vars: {WANDB_API_KEY: hunter2, LEVEL: '3', URL: 'https://bob:hunter2@host/x'}
    pip: [numpy, 'https://bob:hunter2@host/wheel.whl']
    """
    found = REDACT.settings(text)
    assert found["env_vars"].keys() == {"WANDB_API_KEY", "LEVEL", "URL"}
    assert found["env_vars"]["LEVEL"] == "3"
    assert found["pip"][0] == "numpy"
    assert "hunter2" not in str(found)


@pytest.mark.parametrize(
    "text",
    ["", "a: [", "\x00", "&a [*a]", "a: &a [1]\nb: [*a, *a]", "[" * 1000, "!!int ''", "!!bool x", "2026-99-99"],
)
def test_one_that_cannot_be_read_is_not_kept(text: str) -> None:
    assert REDACT.settings(text) is None


@pytest.mark.timeout(60)
@pytest.mark.parametrize("part", ["-", "--_", "key=", "-----BEGIN PRIVATE KEY-----"])
def test_no_pattern_takes_long_for_what_people_write(part: str) -> None:
    """Python tries a pattern at each place, unlike the collector's RE2."""
    assert REDACT.text(part * 20_000)
