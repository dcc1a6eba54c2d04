"""What is written as YAML is read as the same values, and a number that YAML changes reaches no text."""

import re
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.problems import StackFileError
from core.stack_file import stack_file
from core.yaml_reader.document import document
from core.yaml_reader.scalars import DocumentError, resolve_of_kubernetes
from core.yaml_writer import FastFileDumper, FileDumper, GoDumper
from kuberay import OperatorContext, validate
from stacks.load import settings_of
from stacks.settings import StackSettings

pytestmark = pytest.mark.thorough

DUMPERS = [GoDumper, FileDumper, FastFileDumper]

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.text(" \t\n\r-:#'\"|>ab1e.\x85\u2028\u2029\ufeff", max_size=12),
    st.from_regex(r"[-+]?[0-9][0-9_]{0,5}(\.[0-9_]{0,4})?([eE][-+]?[0-9]{1,2})?", fullmatch=True),
    st.sampled_from(["y", "N", "on", "12:30", "0o17", "2026-01-01", "2026-1-5", ".inf", "~", "null", "<<", "=", ""]),
)


@pytest.mark.parametrize("dumper", DUMPERS)
@given(text=TEXTS)
@example(text="1234567e1")
@example(text="a\u2028b\nc")
@example(text="\n  a\n")
@example(text="a \n")
@example(text="\u00a0")
@example(text="a: \u2003b")
def test_a_text_stays_the_same_text(dumper: type[yaml.SafeDumper], text: str) -> None:
    value = {"key": text, "list": [{text: text}]}
    written = yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=40)
    for read in (document(written), document(written, resolve_of_kubernetes)):
        assert read is not None
        assert read.value == value
    assert yaml.safe_load(written) == value


FILE = """\
config:
  ray-platform:nodes:
    - {{pool: a100, count: 4, cpu: 64, memory: 1000Gi, gpus: 8}}
  ray-platform:tenants:
    - name: team-a
      clusters:
        - name: training
          rayVersion: 2.60.0
          image: rayproject/ray:2.60.0
          workers: {{pool: a100}}
          {setting}
"""

PLACES = [
    "env: {{NUMBER: {word}}}",
    "labels: {{number: {word}}}",
    "annotations: {{number: {word}}}",
    "head: {{rayStartParams: {{temp-dir: {word}}}}}",
    "overrides: {{headGroupSpec: {{template: {{metadata: {{annotations: {{number: {word}}}}}}}}}}}",
    "head: {{podTemplate: {{spec: {{nodeSelector: {{number: {word}}}}}}}}}",
]

WORDS = st.one_of(
    st.from_regex(r"[-+]?[0-9][0-9_]{0,5}(\.[0-9_]{0,4})?([eE][-+]?[0-9]{1,2})?", fullmatch=True),
    st.from_regex(r"[-+]?0[xX][0-9a-fA-F]{1,5}|[-+]?0[bB][01]{1,5}|[-+]?0[oO]?[0-7]{1,5}", fullmatch=True),
    st.from_regex(r"[0-9]{1,2}(:[0-9]{2}){1,2}", fullmatch=True),
    st.sampled_from(["yes", "no", "on", "off", "y", "N", "True", "FALSE", "1e400", ".5", "5.", "+.5e1"]),
)


def settings_or_messages(text: str) -> StackSettings | list[str]:
    try:
        return settings_of(stack_file("Pulumi.numbers.yaml", text))
    except StackFileError as error:
        return [each.message for each in error.findings]


def value_of(found: StackSettings) -> str:
    """The text that the cluster gets, at whichever of the places it is."""
    [cluster] = found.tenants[0].clusters
    head = cluster.head
    texts: list[str] = [*cluster.env.values(), *cluster.labels.values(), *cluster.annotations.values()]
    texts += [*head.ray_start_params.values(), *leaves(cluster.overrides), *leaves(head.pod_template)]
    [text] = texts
    return text


def leaves(value: Any) -> list[Any]:
    return [leaf for each in value.values() for leaf in leaves(each)] if isinstance(value, dict) else [value]


@settings(max_examples=400, derandomize=True)
@example("2.10", PLACES[0])
@example("0022", PLACES[1])
@example("12:30", PLACES[2])
@given(WORDS, st.sampled_from(PLACES))
def test_a_text_is_what_was_written_or_an_error_with_it_in_quotes(word: str, place: str) -> None:
    found = settings_or_messages(FILE.format(setting=place.format(word=word)))
    if isinstance(found, StackSettings):
        assert value_of(found) == word
    elif not re.search("write it in quotes", found[0]):
        assert repr(word) in found[0]
    else:
        [message] = found
        shown = re.search(r'write it in quotes, "(.*)"', message)
        assert shown
        assert shown[1] == word
        quoted = settings_or_messages(FILE.format(setting=place.format(word=f'"{word}"')))
        if isinstance(quoted, StackSettings):
            assert value_of(quoted) == word
        else:
            assert "in quotes" not in quoted[0]


@pytest.mark.parametrize(("word", "value"), [("010", 8), ("6_4", 64), ("1.50", 1.5), ("1e3", 1000), ("-0", 0)])
def test_a_number_stays_a_number_where_one_is_expected(word: str, value: float) -> None:
    found = document(word)
    assert found
    assert found.value == value
    assert isinstance(found.value, type(value))


def test_a_number_of_a_manifest_is_a_plain_one_for_the_schema() -> None:
    found = document("{replicas: 0x2, minReplicas: 1_0}")
    assert found
    group = {"groupName": "a", "template": {"spec": {"containers": [{"name": "ray"}]}}, **found.value}
    body = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "a"},
        "spec": {"headGroupSpec": {"template": group["template"]}, "workerGroupSpecs": [group]},
    }
    assert [each.rule for each in validate(body, OperatorContext())] == ["replicas-within-bounds"]


def test_a_date_is_refused_with_its_quotes() -> None:
    with pytest.raises(DocumentError, match="2026-11-24 is a date to YAML and would be rewritten: put it in quotes"):
        document("2026-11-24")
