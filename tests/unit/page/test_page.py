"""What a page shows, and that names and messages of others stay text in it."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from stacks.commands.page.view import html, live, of_plan, planned, policy
from stacks.commands.plan.drawing import MOST_NODES
from stacks.commands.plan.report import report
from stacks.commands.status.report import sections
from stacks.commands.status.snapshot import Found, Live
from stacks.commands.status.tenants import stack_status
from stacks.planning.plan import plan_of
from tests.unit.page.sample import HOSTILE, NODES, node, page, queues, settings, team_a, team_b, view
from tests.unit.planning.stacks import A100, stack
from tests.unit.status.live import NOW, OPERATOR, found, metadata, pod

PLAN = plan_of(settings())


class Read(HTMLParser):
    """The text, and the names of the elements, of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def in_one_line(text: str) -> str:
    return " ".join(text.split())


def test_a_live_page_has_every_cell_and_reason_of_the_status_and_of_the_plan() -> None:
    known = settings()
    namespaces = {"team-a": team_a(), "team-b": team_b()}
    status = stack_status(known, known.tenants, Live(NOW, namespaces, queues(), OPERATOR))
    shown = in_one_line(Read(page()).text)
    tables = [table for section in sections(status) for table in section.tables] + [*report("sample", PLAN).tables]
    cells = {cell for table in tables for row in (table.columns, *table.rows) for cell in row}
    reasons = {line.partition(": ")[2] for section in sections(status) for line in section.reasons}
    assert len(cells) > 50
    assert len(reasons) == 6
    assert [each for each in cells | reasons | {*report("sample", PLAN).sentences} if each not in shown] == []
    # Rows that are not as desired are marked in words.
    marked = [name for name in ("tuning", "nightly", "training") if f"{name} not as desired" in shown]
    assert marked == ["tuning", "nightly"]


def test_nodes_have_the_tenants_pods_and_what_keeps_others_away() -> None:
    cordoned = node("a100-10", spec={"unschedulable": True})
    gone = found(nodes=[cordoned, *NODES.all("nodes")])
    [pool, others] = live(PLAN, gone, {"team-a": team_a(), "team-b": team_b()})
    assert (pool.title, pool.number, pool.held, pool.gpus) == ("a100", 5, 22, 40)
    assert [each.name for each in pool.nodes] == ["a100-0", "a100-1", "a100-2", "a100-3", "a100-10"]
    assert pool.nodes[4].notes == ("cordoned",)
    second = pool.nodes[1]
    assert [(each.owner, each.group, each.gpus) for each in second.pods] == [
        ("team-a/training", "a100-8gpu", 4),
        ("team-a/training", "a100-8gpu", 2),
    ]
    assert second.cells == [0] * 6 + [None] * 2
    assert (others.title, others.nodes[0].name) == ("Nodes that do not exist any more", "node-0")


def test_without_the_right_to_read_nodes_those_with_pods_are_shown_with_the_reason() -> None:
    unreadable = Found({}, {"nodes": "nodes is forbidden"})
    [pool] = live(PLAN, unreadable, {"team-a": team_a()})
    assert (pool.title, pool.number) == ("Nodes that this account must not read", 3)
    assert "nodes is forbidden" in html(view(nodes=unreadable))


def test_pods_that_have_ended_or_belong_to_nothing_known() -> None:
    submitter = pod("nightly-x", node="a100-0")
    submitter["metadata"] = metadata("nightly-x", labels={"batch.kubernetes.io/job-name": "nightly"})
    stray = pod("stray", node="a100-0")
    stray["metadata"] = metadata("stray")
    objects = found(pods=[submitter, stray, pod("done", gpus=8, node="a100-0", phase="Succeeded")])
    [pool] = live(PLAN, NODES, {"team-a": objects})
    assert [(each.owner, each.group) for each in pool.nodes[0].pods] == [
        ("team-a/nightly", "submitter"),
        ("team-a/stray", "pod"),
    ]


def test_of_many_nodes_those_with_pods_are_shown() -> None:
    many = found(nodes=[node(f"a100-{number}") for number in range(500)])
    [pool] = live(PLAN, many, {"team-a": found(pods=[pod("training-0", gpus=8, node="a100-400")])})
    assert (pool.number, len(pool.nodes), pool.nodes[0].name) == (500, MOST_NODES, "a100-400")
    [pool] = planned(plan_of(stack(nodes=[A100 | {"count": 500}])))
    assert (pool.number, len(pool.nodes)) == (500, MOST_NODES)


def test_a_node_is_of_the_pool_whose_labels_it_has_or_of_none() -> None:
    plain = {"pool": "plain", "count": 1, "cpu": 8, "memory": "8Gi"}
    labelled = plain | {"pool": "labelled", "labels": {"for": "redis"}}
    nodes = [node("a", gpus=0), node("b", gpus=0), node("big")]
    nodes[1]["metadata"]["labels"]["for"] = "redis"
    pools = live(plan_of(stack(nodes=[plain, labelled])), found(nodes=nodes), {})
    assert {each.title: [node.name for node in each.nodes] for each in pools} == {
        "plain": ["a"],
        "labelled": ["b"],
        "Nodes of no pool of the stack file": ["big"],
    }


@pytest.mark.parametrize("where", ["a message", "a node", "a stack", "an owner"])
def test_a_hostile_text_stays_text(where: str) -> None:
    plain = Read(page())
    if where == "a message":
        made = page(HOSTILE)
    elif where == "a node":
        made = html(view(nodes=found(nodes=[node(HOSTILE)])))
    elif where == "a stack":
        made = html(of_plan(HOSTILE, PLAN))
    else:
        made = html(view(team_b=found(pods=[pod("p", cluster=HOSTILE, gpus=1, node="a100-3")])))
    hostile = Read(made)
    assert HOSTILE in hostile.text
    assert {*hostile.elements} <= {*plain.elements}
    assert not {each for each in hostile.attributes if each.startswith("on") or each == "style"}


def test_the_policy_allows_the_pages_own_style_and_script_and_nothing_else() -> None:
    made = page()
    assert not re.search(r"""(?:src|href)=["'](?!#)|url\(|@import""", made)
    digests = {
        kind: base64.b64encode(
            hashlib.sha256(re.findall(f"<{kind}>(.*?)</{kind}>", made, re.DOTALL)[0].encode()).digest()
        )
        for kind in ("style", "script")
    }
    assert policy(live=True) == (
        f"default-src 'none'; style-src 'sha256-{digests['style'].decode()}'; base-uri 'none'; form-action 'none'; "
        f"script-src 'sha256-{digests['script'].decode()}'; connect-src 'self'"
    )
    assert made.count("<script") == made.count("<style") == 1
    still = html(of_plan("dev", PLAN))
    assert "<script" not in still
    assert "script-src" not in still


def test_values_of_secrets_and_environments_are_not_on_the_page() -> None:
    mark = "aB3dE5gH7jK9mN2pQ4rS6tU8vW1xY3zA5bC7"
    secret = {"name": "ray", "env": [{"name": "TOKEN", "value": mark}], "args": [mark]}
    holder = pod("training-head", node="a100-0")
    holder["spec"]["containers"] = [secret]
    holder["metadata"]["annotations"] = {"note": mark}
    assert mark not in html(view(team_a=found(pods=[holder])))
