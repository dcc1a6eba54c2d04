"""Unusual stack files and secrets at any place: each file is valid or has findings, and no format shows a secret."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.problems import Finding, StackFileError
from core.secrets import FORMATS, SECRET_VALUE_HAS, secret_in
from core.stack_file import stack_file
from core.yaml_reader.document import document
from stacks.commands.check.findings import Checked, as_annotations, as_json, check, show
from stacks.load import settings_of

GOOD = sorted((Path(__file__).parents[2] / "stack_files" / "good").glob("*.yaml"))
TEXTS = [file.read_text() for file in GOOD]
VALUES = [found.value for text in TEXTS if (found := document(text))]

EXTREME: list[Any] = [
    *(None, True, False, 0, 1, -1, 1.5, 10**9, 2**31, 2**63, 2**64, 10**400, 1e308, -0.0),
    *("", " ", "\n", "a b", "a" * 300, "Ä", "🚀", "\u202e", "\x07", "$(reboot)", "`id`", "'; --", "%s", "{}", "{0}"),
    *("0", "-1", "1e9", "4GB", "4Gi", "NaN", "null", "true", "latest", "2.60.0", "5m", "a100", "training", "[key]"),
    *([], {}, [[]], [{}], {"": None}, {"secure": "x"}, {"$patch": "delete"}, {"name": "training"}, [None], [1, "a"]),
    json.loads("[" * 45 + "]" * 45),
]
KEYS = ["", "secure", "name", "rayVersion", "idleTimout", "$patch", "groupName", "a\nb", "[key]", "Ä", "0", "overrides"]


def findings(text: str) -> tuple[Finding, ...]:
    try:
        settings_of(stack_file("Pulumi.fuzz.yaml", text))
    except StackFileError as error:
        return error.findings
    return ()


def assert_usable(text: str) -> None:
    """Findings are readable lines, at places that exist in the file."""
    lines = len(text.splitlines()) + 1
    for finding in findings(text):
        line = finding.in_file("Pulumi.fuzz.yaml")
        assert line.isprintable(), line
        assert len(line) < 2_000
        assert finding.message
        assert finding.line is None or 1 <= finding.line <= lines
        assert (finding.line is None) == (finding.column is None)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all leaves of a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in items:
        yield (*path, step)
        yield from places(item, (*path, step))


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A valid file with one to four of its parts dropped, doubled, renamed or replaced."""
    value = copy.deepcopy(draw(st.sampled_from(VALUES)))
    for _ in range(draw(st.integers(1, 4))):
        paths = list(places(value))
        if not paths:
            break
        *above, step = draw(st.sampled_from(paths))
        holder = value
        for each in above:
            holder = holder[each]
        match draw(st.sampled_from(["drop", "double", "rename", "add", "replace", "replace"])):
            case "drop":
                del holder[step]
            case "double" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[step]))
            case "rename" if isinstance(holder, dict):
                holder[draw(st.sampled_from(KEYS))] = holder.pop(step)
            case "add" if isinstance(holder, dict):
                holder[draw(st.sampled_from(KEYS))] = copy.deepcopy(draw(st.sampled_from(EXTREME)))
            case _:
                holder[step] = copy.deepcopy(draw(st.sampled_from(EXTREME)))
    return value


@given(mutated())
def test_good_files_with_other_values(value: Any) -> None:
    assert_usable(json.dumps(value))


@given(
    st.sampled_from(TEXTS), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30), st.text(max_size=5)), max_size=4)
)
def test_good_files_with_other_characters(text: str, edits: list[tuple[float, int, str]]) -> None:
    for where, length, inserted in edits:
        at = int(where * len(text))
        text = text[:at] + inserted + text[at + length :]
    assert_usable(text.encode(errors="replace").decode())


@given(st.text(alphabet="ab:-[]{}&*!|>'\"#%@`,?.\\~<0123e_x\n\t \ufeff\u2028", max_size=80))
def test_text_of_yamls_own_characters(text: str) -> None:
    assert_usable(text)
    assert_usable(f"config:\n  ray-platform:operator:\n    env: {text}")


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(alphabet="abcß ☃\n'\"#:-", max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="abc", min_size=1), inner, max_size=3),
    max_leaves=12,
)


@given(VALUE.filter(lambda value: value is not None), st.booleans())
def test_a_written_value_is_read_back(value: Any, flow: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True)
    found = document(text)
    assert found is not None
    assert found.value == value
    lines = text.splitlines()
    for path in places(value):
        assert found.span(path).line <= len(lines)


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
    """The path of each value of a stack file that is not a mapping or list."""
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
