"""YAML documents: values with their lines and columns, composed from libyaml's events as Pulumi does; and documents
merged over others: mappings by their keys, lists by the names of their items.

The composer of PyYAML follows nesting and aliases without limits, and crashes or hangs on a malicious file. Tags, dates
and keys that are not text are refused, because the program would receive something other than what was written.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from yaml._yaml import CParser, Mark
from yaml.reader import ReaderError

from core.problems import Path
from core.strategic_merge import DIRECTIVE, MERGE_KEYS
from core.yaml_reader.scalars import UNUSUAL_SPACE, DocumentError, Node, NotPlainError, Span, resolve


@dataclass(frozen=True)
class Document:
    """One YAML document."""

    root: Node

    @property
    def value(self) -> Any:
        """Mappings, lists, text, numbers, booleans and None."""
        return self.root.value

    def span(self, path: Path, of_key: bool = False) -> Span:
        """Span of the value at a path. For a mapping or list, or with `of_key`, it is the span of the key.

        For a missing value it is the span of its nearest existing parent.
        """
        node, span = self.root, self.root.span
        for index, step in enumerate(path):
            child = node.children.get(step)
            if child is None:
                break
            key = child.children or child.value is None or (of_key and index == len(path) - 1)
            span = node.key_spans[step] if key and step in node.key_spans else child.span
            node = child
        return span

    def line(self, path: Path) -> int:
        """Line of the part at a path, which may be inside a text of YAML; else of its nearest existing parent."""
        node = self.root
        for index, step in enumerate(path):
            if step not in node.children:
                return self.span(path[:index]).line + _line_within(node.value, path[index:])
            node = node.children[step]
        return self.span(path).line

    def said(self, path: Path, message: str) -> str:
        """A message about the value at a path, with the text's own word for a boolean: `yes`."""
        node: Node | None = self.root
        for step in path:
            node = node.children.get(step) if node else None
        if node is None or node.word is None:
            return message
        value = str(node.value).lower()
        return message.replace(f"{value} is ", f"{node.word} is ", 1).replace(f'"{value}"', f'"{node.word}"')


def _line_within(text: Any, path: Path) -> int:
    """Lines from a key to a part of its block of YAML; 0 if the key has none."""
    if not isinstance(text, str) or "\n" not in text:
        return 0
    try:
        found = document(text)
    except DocumentError:
        return 0
    return found.line(path) if found else 0


Resolve = Callable[[str], Any]
"""The value of an unquoted scalar. Raises NotPlainError."""


def document(text: str, resolve: Resolve = resolve) -> Document | None:
    """The document in a text; None if the text is empty. `resolve`: default: as Pulumi. Raises DocumentError."""
    found = documents(text, resolve)
    first = next(found, None)
    if second := next(found, None):
        raise DocumentError("a second document begins here: keep one in the file", second.root.span)
    return first


def documents(text: str, resolve: Resolve = resolve) -> Iterator[Document]:
    """The documents in a text, one by one. Raises DocumentError if one is not YAML, or exceeds the limits."""
    try:
        parser = CParser(text)
        while not isinstance(event := parser.get_event(), yaml.StreamEndEvent):
            if isinstance(event, yaml.DocumentStartEvent):
                yield Document(Composer(parser, resolve).compose())
    except yaml.MarkedYAMLError as error:
        raise _not_yaml(error, text) from error
    except ReaderError as error:
        before = text.encode()[: error.position].decode(errors="ignore")
        span = Span(before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise DocumentError(f"a control character, U+{error.character:04X}: remove it", span) from error


_CONFLICT = ("<<<<<<< ", ">>>>>>> ", "||||||| ")

_SPACE = "an unusual space, such as a no-break space: replace it with a plain one"

_OPENED = ("quoted scalar", "flow mapping", "flow sequence")
"""What the parser says of a quote or a bracket."""


def _not_yaml(error: yaml.MarkedYAMLError, text: str) -> DocumentError:
    mark = mark_of(error.problem_mark or error.context_mark)
    span = Span(mark.line + 1, mark.column + 1)
    lines = text.splitlines()
    line = lines[mark.line : mark.line + 1]
    if line and line[0][mark.column : mark.column + 1] == "\t":
        return DocumentError("a tab: indent with spaces", span)
    for number, each in enumerate(lines[: mark.line + 1], 1):
        if each.startswith(_CONFLICT):
            return DocumentError("a conflict of git: keep one of the two sides, and remove its marks", Span(number, 1))
        if (found := UNUSUAL_SPACE.match(each)) and not each.isspace():
            return DocumentError(_SPACE, Span(number, found.end()))
    if quote := _quote_over_lines(text, mark.line):
        message = f"the quote that opens here is closed on line {span.line}, and more follows there: close it before"
        return DocumentError(message, quote)
    opened = mark_of(error.context_mark or error.problem_mark)
    if opened.line < mark.line and any(each in (error.context or "") for each in _OPENED):
        what = "quote" if "quoted" in str(error.context) else "bracket"
        message = f"the {what} that opens here is not closed before line {span.line}: {error.problem}; close it"
        return DocumentError(message, Span(opened.line + 1, opened.column + 1))
    context = f" {error.context}" if error.context else ""
    return DocumentError(f"this is not YAML: {error.problem}{context}; correct it here or just before", span)


def _quote_over_lines(text: str, line: int) -> Span | None:
    """Where a quote opens that the next one closes, on a later line: this one."""
    try:
        for token in yaml.scan(text, Loader=yaml.CSafeLoader):
            if isinstance(token, yaml.ScalarToken) and token.style in ("'", '"'):
                start, end = mark_of(token.start_mark), mark_of(token.end_mark)
                if start.line < end.line == line:
                    return Span(start.line + 1, start.column + 1)
    except yaml.YAMLError:  # the text has an error, which the caller reports
        pass
    return None


DEEPEST = 50
"""Maximum nesting of mappings and lists. The deepest field of a RayCluster is below 20."""

LARGEST = 200_000
"""Maximum values in a document. Aliased values count each time; text counts by its length. A cluster has 10 to 100."""

_MERGE = object()
"""Value of the key `<<`, which is not text."""

_TEXT = "tag:yaml.org,2002:str"
_CHARACTERS = 100
"""Characters of text that count as one value."""


class _Open:
    """A mapping or list that is not complete."""

    __slots__ = ("anchor", "key", "merged", "node")

    def __init__(self, node: Node, anchor: str | None) -> None:
        self.node = node
        self.anchor = anchor
        self.key: Node | None = None
        self.merged: list[Node] = []


class Composer:
    """Composes the node of one document from its events, without recursion."""

    def __init__(self, parser: CParser, resolve: Resolve) -> None:
        """`parser` has started the document."""
        self._parser, self._resolve = parser, resolve
        self._open: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self._size = 0

    def compose(self) -> Node:
        """The root node of the document; leaves the parser after it."""
        root: Node | None = None
        while not isinstance(event := self._parser.get_event(), yaml.DocumentEndEvent):
            node = self._node(event)
            if node is not None and self._open:
                self._put(node)
            elif node is not None:
                root = node
        return root or Node(None, Span(1, 1))

    def _node(self, event: yaml.Event | None) -> Node | None:
        """The node that an event completes; None if it starts one."""
        if isinstance(event, yaml.ScalarEvent):
            node = _scalar(event, self._resolve)
            if event.implicit[0] and event.value == "<<" and self._open and self._awaits_key():
                node.value = _MERGE
            if event.anchor:
                self._anchors[event.anchor] = node
            return self._counted(node)
        if isinstance(event, yaml.AliasEvent):
            return self._counted(self._aliased(event))
        if isinstance(event, yaml.CollectionStartEvent):
            self._start(event)
            return None
        done = self._open.pop()
        if done.anchor:
            self._anchors[done.anchor] = done.node
        for merged in done.merged:
            self._merge(merged, done.node)
        return done.node

    def _start(self, event: yaml.CollectionStartEvent) -> None:
        span = _span(event)
        if len(self._open) == DEEPEST:
            raise _too_deep(span)
        if not event.implicit:
            raise _tagged(event.tag, span)
        if self._open and self._awaits_key():
            raise DocumentError("a key that is a mapping or a list: write a word before the colon", span)
        if event.anchor:
            self._anchors.pop(event.anchor, None)
        value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        node = self._counted(Node(value, span))
        node.children, node.key_spans = {}, {}
        self._open.append(_Open(node, event.anchor))

    def _awaits_key(self) -> bool:
        top = self._open[-1]
        return isinstance(top.node.value, dict) and top.key is None

    def _aliased(self, event: yaml.AliasEvent) -> Node:
        """The node that an alias refers to."""
        name, span = event.anchor, _span(event)
        if any(each.anchor == name for each in self._open):
            raise DocumentError(f"alias *{name} is inside the value that it repeats: write the values out", span)
        if name not in self._anchors:
            raise DocumentError(f"alias *{name} has no anchor &{name} before it", span)
        node = self._anchors[name]
        if len(self._open) + node.depth > DEEPEST:
            raise _too_deep(span)
        return node

    def _counted(self, node: Node) -> Node:
        self._size += node.size
        if self._size > LARGEST:
            raise DocumentError(
                f"more than {LARGEST} values, aliases counted as what they repeat: is it a stack file?", node.span
            )
        return node

    def _put(self, node: Node) -> None:
        """Adds a node to the innermost incomplete mapping or list."""
        top = self._open[-1]
        parent = top.node
        if isinstance(parent.value, list):
            parent.children[len(parent.value)] = node
            parent.value.append(node.value)
        elif top.key is None:
            top.key = _key(node, parent)
            return
        elif top.key.value is _MERGE:
            if top.merged:
                raise DocumentError("<< occurs twice: write one list of aliases", top.key.span, "repeated-key")
            top.merged = _mappings(node)
            top.key = None
            return
        else:
            parent.children[top.key.value] = node
            parent.key_spans[top.key.value] = top.key.span
            parent.value[top.key.value] = node.value
            top.key = None
        parent.size += node.size
        parent.depth = max(parent.depth, node.depth + 1)

    def _merge(self, merged: Node, into: Node) -> None:
        """Adds the keys of `<<` that the mapping does not have itself."""
        self._counted(merged)
        into.size += merged.size
        into.depth = max(into.depth, merged.depth)
        into.value.update({key: value for key, value in merged.value.items() if key not in into.value})
        into.children.update({key: child for key, child in merged.children.items() if key not in into.children})
        into.key_spans.update({key: span for key, span in merged.key_spans.items() if key not in into.key_spans})


def _scalar(event: yaml.ScalarEvent, resolve: Resolve) -> Node:
    span = _span(event)
    plain, quoted = event.implicit
    if not plain and not quoted and event.tag != _TEXT:
        raise _tagged(event.tag, span)
    if plain and not event.value.isascii() and (found := UNUSUAL_SPACE.match(event.value)):
        raise DocumentError(_SPACE, Span(span.line, span.column + found.end() - 1))
    try:
        value = resolve(event.value) if plain else event.value
    except NotPlainError as error:
        raise DocumentError(str(error), span) from error
    node = Node(value, span)
    if isinstance(value, bool):
        node.word = event.value
    node.size += len(event.value) // _CHARACTERS
    return node


def _key(node: Node, parent: Node) -> Node:
    if node.value is _MERGE:
        return node
    if not isinstance(node.value, str):
        written = "an empty key" if node.value is None else f"key {node.word or node.value}"
        raise DocumentError(f"{written} is not text: put it in quotes", node.span)
    if node.value in parent.value:
        first = parent.key_spans[node.value].line
        raise DocumentError(f"key {node.value!r} is already set in line {first}: keep one", node.span, "repeated-key")
    return node


def _mappings(node: Node) -> list[Node]:
    """The mappings in the value of `<<`."""
    found = list(node.children.values()) if isinstance(node.value, list) else [node]
    if all(isinstance(each.value, dict) for each in found):
        return found
    raise DocumentError("the value of << is not a mapping: write an alias of one, or a list of such aliases", node.span)


def _tagged(tag: str | None, span: Span) -> DocumentError:
    written = (tag or "!").replace("tag:yaml.org,2002:", "!!")
    return DocumentError(f"tag {written} is not allowed: remove it, and put what is text in quotes", span)


def _span(event: yaml.Event) -> Span:
    start, end = mark_of(event.start_mark), mark_of(event.end_mark)
    same_line = start.line == end.line and end.column > start.column
    return Span(start.line + 1, start.column + 1, end.column + 1 if same_line else None)


def mark_of(mark: object) -> Mark:
    """Asserts that a mark is set: libyaml sets both marks of an event, and one of two of an error."""
    assert isinstance(mark, Mark)
    return mark


def _too_deep(span: Span) -> DocumentError:
    return DocumentError(f"more than {DEEPEST} mappings and lists within each other: is it a stack file?", span)


NAMES = ("name", "pool", "groupName")
"""Keys that name an item of a list: tenants, clusters and queues by `name`, nodes by `pool`, worker groups by
`groupName`."""

PATCHES = frozenset({"overrides", "podTemplate", "submitterPodTemplate", "volumes", "volumeMounts"})
"""Keys whose values have KubeRay's and Kubernetes' own fields. In these null and `$patch` are kept, because they
patch what is derived from the settings, and lists merge by the keys of Kubernetes (`MERGE_KEYS`)."""


def merged(base: Node, over: Node) -> Node:
    """`over` merged over `base`. Neither is changed; the result has nodes of both.

    Raises DocumentError if an item is to be removed that the base does not have, or an instruction is unknown.
    """
    return _merged(base, over, NAMES)


def _merged(base: Node, over: Node, names: tuple[str, ...], *, patch: bool = False) -> Node:
    """`names`: the keys that name the items of a list. `patch`: within one of PATCHES."""
    if isinstance(over.value, dict):
        return _mapping(base if isinstance(base.value, dict) else _NOTHING, over, patch)
    if isinstance(over.value, list):
        return _list(base if isinstance(base.value, list) else _NOTHING, over, names, patch)
    return over


def _mapping(base: Node, over: Node, patch: bool) -> Node:
    if not patch and DIRECTIVE in over.children:
        raise _unknown_instruction(over.children[DIRECTIVE])
    children, keys = dict(base.children), dict(base.key_spans)
    for key, child in over.children.items():
        inside = patch or key in PATCHES
        if child.value is None and not inside and key in children:
            del children[key], keys[key]
        else:
            names = MERGE_KEYS.get(str(key), ()) if inside else NAMES
            children[key] = _merged(children.get(key, _NOTHING), child, names, patch=inside)
            keys[key] = over.key_spans[key]
    return collection({key: child.value for key, child in children.items()}, over.span, children, keys)


def _list(base: Node, over: Node, names: tuple[str, ...], patch: bool) -> Node:
    before, items = list(base.children.values()), list(over.children.values())
    if not patch and any(item.value == {DIRECTIVE: "replace"} for item in items):
        before, items = [], [item for item in items if item.value != {DIRECTIVE: "replace"}]
    # An empty list replaces: it has no names to merge by.
    key = next((each for each in names if items and _distinct(before, each) and _distinct(items, each)), None)
    found: dict[object, Node] = {item.value[key]: item for item in before} if key else {}
    for at, item in enumerate(items):
        name = item.value[key] if key else at
        if not patch and isinstance(item.value, dict) and item.value.get(DIRECTIVE) == "delete":
            if found.pop(name, None) is None:
                raise _nothing_to_delete(item.children[DIRECTIVE])
        else:
            found[name] = _merged(found.get(name, _NOTHING) if key else _NOTHING, item, names, patch=patch)
    children: dict[str | int, Node] = dict(enumerate(found.values()))
    return collection([item.value for item in children.values()], over.span, children, {})


def _distinct(items: list[Node], key: str) -> bool:
    """Whether all items have the key, and no two of them the same text."""
    values = [item.value.get(key) if isinstance(item.value, dict) else None for item in items]
    return all(isinstance(value, str) for value in values) and len(set(values)) == len(values)


def collection(value: Any, span: Span, children: dict[str | int, Node], keys: dict[str | int, Span]) -> Node:
    """A mapping or a list of these children. `keys`: the places of a mapping's keys."""
    node = Node(value, span)
    node.children, node.key_spans = children, keys
    node.size += sum(child.size for child in children.values())
    node.depth = max((child.depth + 1 for child in children.values()), default=0)
    return node


def _nothing_to_delete(node: Node) -> DocumentError:
    message = (
        "$patch: delete removes the item of this name from the list of a base, which has none: correct the name, or "
        "remove the item here"
    )
    return DocumentError(message, node.span, "extends")


def _unknown_instruction(node: Node) -> DocumentError:
    message = (
        "$patch is only allowed in lists that a base has too: `$patch: delete` beside the name of an item removes the "
        "item, and an item `- $patch: replace` replaces the list"
    )
    return DocumentError(message, node.span, "extends")


_NOTHING = Node(None, Span(1, 1))
