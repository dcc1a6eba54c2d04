"""A secret at any place of a stack file, known or unknown, is found, and no format of `check` shows it."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.secrets import FORMATS, SECRET_VALUE_HAS, secret_in
from stacks.commands.check.findings import Checked, as_annotations, as_json, check, show

MARK = "aB3dE5gH7jK9mN2pQ4rS6tU8vW1xY3zA5bC7"

SECRETS = {
    "a password in a URL": f"redis://user:{MARK}@cache:6379",
    "a private key": f"-----BEGIN EC PRIVATE KEY-----\n{MARK}\n-----END EC PRIVATE KEY-----",
    "a token of Hugging Face": f"hf_{''.join(each for each in MARK if each.isalpha()) * 2}",
    "a token of GitHub": f"ghp_{MARK}",
    "a token of GitLab": f"glpat-{MARK[:20]}",
    "an API key of OpenAI or Anthropic": f"sk-ant-{MARK}",
    "an access key of AWS": "AKIAQWERTYUIOPASDFGH",
    "an API key of Google": f"AIza{MARK[:35]}",
    "a token of Slack": f"xoxb-{MARK}",
    "a JSON Web Token": f"eyJ{MARK}.eyJ{MARK}.{MARK}",
}

FILE = yaml.safe_load((Path(__file__).parents[2] / "stack_files" / "good" / "every-setting.yaml").read_text())


def texts(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each value of a stack file that is no mapping or list."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from texts(item, (*path, key))
    if not isinstance(value, dict | list):
        yield path


PLACES = sorted(texts(FILE), key=str)


def with_secret(place: tuple[Any, ...], key: str | None, text: str) -> str:
    """The stack file with a text in place of a value, or under an unknown key beside it."""
    file = copy.deepcopy(FILE)
    part = file
    for step in place[:-1]:
        part = part[step]
    if key is None or not isinstance(part, dict):
        part[place[-1]] = text
    else:
        part[key] = text
    return str(yaml.safe_dump(file))


def shown(checked: Checked, capsys: pytest.CaptureFixture[str]) -> str:
    """The findings in all formats."""
    show([checked])
    return "\n".join([capsys.readouterr().out, as_json([checked]), *as_annotations([checked])])


def test_each_format_is_found_by_its_look() -> None:
    assert SECRETS.keys() == FORMATS.keys()
    assert {kind: secret_in(f"--key={text} more") for kind, text in SECRETS.items()} == {kind: kind for kind in SECRETS}
    assert all(SECRET_VALUE_HAS.search(text) for text in SECRETS.values())


@settings(max_examples=120, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    place=st.sampled_from(PLACES),
    key=st.sampled_from([None, "nonsense", "password", "url"]),
    kind=st.sampled_from(sorted(SECRETS)),
)
def test_no_format_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: tuple[Any, ...], key: str | None, kind: str
) -> None:
    text = SECRETS[kind]
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(with_secret(place, key, text))
    checked = check(file)
    if place[1].startswith("ray-platform:"):
        assert "plaintext-secret" in [finding.rule for finding in checked.findings]
    longest = max(text.replace("\n", " ").replace("@", " ").replace(":", " ").split(), key=len)
    assert longest not in shown(checked, capsys)


@pytest.mark.parametrize("within", [{"note": SECRETS["a token of Hugging Face"]}, [SECRETS["a token of Hugging Face"]]])
def test_no_format_shows_one_within_an_unknown_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], within: object
) -> None:
    file = copy.deepcopy(FILE)
    (tenant, *_) = file["config"]["ray-platform:tenants"]
    tenant["clusters"][0]["overrides"] = {"metadata": {"annotations": within}}
    written = tmp_path / "Pulumi.dev.yaml"
    written.write_text(yaml.safe_dump(file))
    checked = check(written)
    assert "unknown-field" in [finding.rule for finding in checked.findings]
    assert SECRETS["a token of Hugging Face"] not in shown(checked, capsys)


def test_the_level_of_a_rule_about_tokens_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text("config:\n  ray-platform:policies: {rules: {ray-auth-tokens: sometimes}}\n")
    checked = check(file)
    show([checked])
    assert "'sometimes' is not allowed" in capsys.readouterr().out
    assert '"value": "sometimes"' in as_json([checked])
