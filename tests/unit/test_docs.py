"""The pages: their links lead somewhere, their commands exist, their lines are short, and the versions are current."""

import ast
import importlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from local import paths
from local.site import pages_of_the_project, slug
from local.versions import PAGE, page, rows

ROOT = Path(__file__).parents[2]

PAGES = pages_of_the_project()

GENERATED = {ROOT / "docs" / "reference" / name for name in ("policies.md", "policy-verdicts.md", "stack-file.md")}
"""Generated pages: their lines are as long as their texts."""

LENGTH = 120

TYPER_APPS = {"ray-platform": "stacks.__main__", "python -m local": "local.__main__"}
"""Programs, and the modules of their commands, which are quick to import. Those of benchmarks are not."""

ANY_ARGUMENTS = {"pytest", "pip", "venv"}
"""Modules of other projects."""

FENCE = re.compile(r"^ *```")
LIST_ITEM = re.compile(r"^ *(?:[-*]|\d+\.) ")
SPAN = re.compile(r"(`+)(.+?)\1", re.DOTALL)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?\s*\)")
HEADING = re.compile(r"^(#{1,6}) +(.*?) *#*$")
ANCHOR = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")
FILE = re.compile(
    r"(?:benchmarks|components|core|docs|gateway|kuberay|local|policies|stacks|testbed|tests)/[\w./-]*\.(?:go|md|py|sh|yaml)"
)
"""A code span that is the path of a file from the top folder."""

MAKE = re.compile(r"(?:^|[|;&(])\s*(?:[A-Z]+=\S+ +)*make(?: +-\w+)*(?: +[A-Z]+=\S+)* +([a-z][a-z-]*)")
PYTHON = re.compile(r"(?<![\w-])(python3? -m [A-Za-z_][\w.]*|ray-platform(?= (?:-|[a-z])))([^\n#;&`)]*)")
"""A program and its arguments. A page names the namespace or quota `ray-platform` without a word after it."""
ROOM_FOR_A_LINK = 1
"""Words of a line that cannot be broken, such as a long link by itself."""


@cache
def parts(page: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lines of a page that are prose, and those that are code; the others of each are empty."""
    prose, code = [], []
    fenced = in_code = after_blank = False
    for line in page.read_text().splitlines():
        indented = line.startswith("    ")
        if FENCE.match(line):
            fenced = not fenced
            prose.append("")
            code.append("")
            continue
        if line.strip() and not fenced:
            in_code = indented and (in_code or after_blank)
        is_code = fenced or (in_code and bool(line.strip()))
        prose.append("" if is_code else line)
        code.append(line if is_code else "")
        after_blank = not line.strip()
    return tuple(prose), tuple(code)


def text(page: Path) -> str:
    """The prose of a page, with its code spans."""
    return "\n".join(parts(page)[0])


def spoken(page: Path) -> str:
    """The prose of a page without its code spans."""
    return SPAN.sub("", text(page))


def commands(page: Path) -> list[str]:
    """All commands that a reader may type: lines of code, and code spans."""
    spans = (re.sub(r"\s+", " ", found.group(2)) for found in SPAN.finditer(text(page)))
    return [*filter(None, parts(page)[1]), *spans]


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page."""
    found = set(ANCHOR.findall(page.read_text()))
    seen: Counter[str] = Counter()
    for line in parts(page)[0]:
        if heading := HEADING.match(line):
            name = slug(heading.group(2))
            found.add(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
    return frozenset(found)


@cache
def make_targets() -> frozenset[str]:
    return frozenset(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def options_of(command: object) -> frozenset[str]:
    """The options of a command of Typer's."""
    parameters = getattr(command, "params", ())
    found = {name for each in parameters for name in (*each.opts, *each.secondary_opts) if name.startswith("-")}
    return frozenset({*found, "--help"})


@cache
def app(program: str) -> Mapping[str, Any]:
    """Typer's commands by their names."""
    made = typer.main.get_command(importlib.import_module(TYPER_APPS[program]).app)
    return {"": made, **made.commands}  # type: ignore[attr-defined]


def missing(command: Any, arguments: list[str]) -> list[str]:
    """Arguments and options that the command requires and does not get. Its name alone only names it."""
    if not arguments or "--help" in arguments:
        return []
    with command.make_context("documented", [], resilient_parsing=True) as context:
        given, _, _ = command.make_parser(context).parse_args(arguments)
        lacking = [each for each in command.params if each.required and not given.get(each.name)]
    return [each.opts[-1] if each.opts[-1].startswith("--") else str(each.name).upper() for each in lacking]


@cache
def options_of_main(file: Path) -> frozenset[str]:
    """The options of the function `main` that `typer.run` runs, read from the file, which may take long to import."""
    [main] = [
        each for each in ast.parse(file.read_text()).body if isinstance(each, ast.FunctionDef) and each.name == "main"
    ]
    found = {"--help"}
    for argument in (*main.args.args, *main.args.kwonlyargs):
        strings = {
            each.value
            for each in ast.walk(argument)
            if isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.startswith("--")
        }
        name = argument.arg.replace("_", "-")
        found |= {part for each in strings or {f"--{name}/--no-{name}"} for part in each.split("/")}
    return frozenset(found)


def wrong_in_command(program: str, arguments: str) -> Iterator[str]:
    """What is wrong with the words after `ray-platform` or `python -m MODULE`."""
    words = [word.strip("\"'.,:()") for word in re.split(r"\s+", arguments) if word]
    end = next((place for place, word in enumerate(words) if word in {"|", ">", ">>", "--", "<", "-->"}), len(words))
    words = words[:end]
    options = [word.partition("=")[0] for word in words if word.startswith("-") and word != "-"]
    if program in TYPER_APPS:
        known = app(program)
        if len(words) > 1 and hasattr(known.get(words[0]), "commands"):
            program, known, words = f"{program} {words[0]}", known[words[0]].commands, words[1:]
        names = words[0].split("|") if words and not words[0].startswith("-") else [""]
        yield from (f"{program} has no command {name}" for name in names if name not in known)
        for name in filter(known.__contains__, names):
            shown = f"{program} {name}".rstrip()
            unknown = [each for each in options if each not in options_of(known[name])]
            yield from (f"{shown} has no {each}" for each in unknown)
            if name and not unknown:
                yield from (f"{shown} requires {each}" for each in missing(known[name], words[1:]))
        return
    module = program.rpartition(" ")[2]
    top = module.partition(".")[0]
    if top in {"stacks", "policies"}:
        yield f"{program}: write `ray-platform`"
        return
    if top in ANY_ARGUMENTS:
        return
    folder = ROOT.joinpath(*module.split("."))
    file = folder / "__main__.py" if folder.is_dir() else folder.with_suffix(".py")
    if not file.is_file():
        yield f"there is no module {module}"
    elif top == "benchmarks":
        known_options = options_of_main(file)
        yield from (f"{program} has no {each}" for each in options if each not in known_options)


def test_there_are_pages() -> None:
    assert {ROOT / "README.md", ROOT / "docs" / "glossary.md", ROOT / "docs" / "contributing.md"} <= {*PAGES}


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("What survives what", "what-survives-what"),
        ("`install: existing`", "install-existing"),
        ("Kubernetes' own roles", "kubernetes-own-roles"),
        ("A key_with-both, and [a link](there.md)", "a-key_with-both-and-a-link"),
    ],
)
def test_anchors_are_those_of_github(heading: str, anchor: str) -> None:
    assert slug(heading) == anchor


@pytest.mark.parametrize(
    ("program", "arguments", "wrong"),
    [
        ("ray-platform", "check prod --format github", []),
        ("ray-platform", "preview|up prod", []),
        ("ray-platform", "--version", []),
        ("ray-platform", "--conjure", ["ray-platform has no --conjure"]),
        ("ray-platform", "conjure", ["ray-platform has no command conjure"]),
        ("ray-platform", "check --conjure", ["ray-platform check has no --conjure"]),
        ("ray-platform", "adopt staging", ["ray-platform adopt requires CLUSTER"]),
        ("ray-platform", "cml start|stop dev training --format json", []),
        ("ray-platform", "cml start dev", ["ray-platform cml start requires NAME"]),
        ("ray-platform", "recover --state-only", ["ray-platform recover requires STACK"]),
        ("python -m benchmarks.policies", "--no-engine", []),
        ("python -m benchmarks.policies", "--conjure", ["python -m benchmarks.policies has no --conjure"]),
        ("python -m benchmarks.magic", "", ["there is no module benchmarks.magic"]),
    ],
)
def test_a_command_that_does_not_exist_is_found(program: str, arguments: str, wrong: list[str]) -> None:
    assert [*wrong_in_command(program, arguments)] == wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
class TestPage:
    def test_links_lead_somewhere(self, page: Path) -> None:
        wrong = []
        for target in LINK.findall(spoken(page)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
                wrong.append(target)
        assert wrong == []

    def test_files_exist(self, page: Path) -> None:
        spans = [found.group(2) for found in SPAN.finditer(text(page))]
        assert [span for span in spans if FILE.fullmatch(span) and not (ROOT / span).exists()] == []

    def test_commands_exist(self, page: Path) -> None:
        wrong = []
        for command in commands(page):
            wrong += [
                f"make {target}" for target in MAKE.findall(without_comment(command)) if target not in make_targets()
            ]
            for program, arguments in PYTHON.findall(command):
                wrong += wrong_in_command(program, arguments)
        assert wrong == []

    def test_lines_are_short(self, page: Path) -> None:
        if page in GENERATED:
            return
        wrong = [
            f"{number}: {line}"
            for number, line in enumerate(parts(page)[0], 1)
            if len(line) > LENGTH
            and not line.lstrip().startswith(("|", "#", "<!--"))
            and len(LIST_ITEM.sub("", line).split()) > ROOM_FOR_A_LINK
        ]
        assert wrong == []


def without_comment(command: str) -> str:
    """A comment beside a command may use the verb `make`."""
    return re.sub(r"(?:^|\s)#.*", "", command)


def test_the_committed_page_is_generated_from_the_pins() -> None:
    assert PAGE.read_text() == page(), "run `python -m local.versions`"


def test_each_program_is_run_by_a_test() -> None:
    for row in rows():
        assert row.run
        assert (paths.ROOT / row.shown).is_file()
