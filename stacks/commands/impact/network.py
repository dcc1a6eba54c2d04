"""Whether an edit of a NetworkPolicy only allows more, and cuts no connection. Pure functions."""

import json
from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from itertools import product
from typing import Any

from core.body import ReadOnlyBody

_ANY: ReadOnlyBody = {}
"""A peer or a port of a rule that names none."""


def only_widens(before: ReadOnlyBody, after: ReadOnlyBody) -> bool:
    """Whether a NetworkPolicy allows for the same pods all that it did. False if that is not certain."""
    was, will = before["spec"], after["spec"]
    if any(was.get(key) != will.get(key) for key in ("podSelector", "policyTypes")):
        return False
    return all(
        any(_covers(other, each) for other in _allowed(will, direction, peers))
        for direction, peers in (("ingress", "from"), ("egress", "to"))
        for each in _allowed(was, direction, peers)
    )


_Allowed = tuple[Any, Any]
"""A peer, and a port."""


def _allowed(spec: Mapping[str, Any], direction: str, peers: str) -> list[_Allowed]:
    return [
        (peer, port)
        for rule in spec.get(direction) or ()
        for whole in rule.get(peers) or [_ANY]
        for peer in _single(whole)
        for port in rule.get("ports") or [_ANY]
    ]


def _single(value: Any) -> Iterator[Any]:
    """A peer, once for each of the values that its selectors allow for a label."""
    if isinstance(value, Mapping):
        if value.get("operator") == "In":
            yield from ({**value, "values": [each]} for each in value["values"])
            return
        yield from (dict(zip(value, each, strict=True)) for each in product(*map(_single, value.values())))
    elif isinstance(value, list | tuple):
        yield from map(list, product(*map(_single, value)))
    else:
        yield value


def _covers(other: _Allowed, each: _Allowed) -> bool:
    return all(of == _ANY or _same(of, what) or _contains(of, what) for of, what in zip(other, each, strict=True))


def _same(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _contains(one: Any, other: Any) -> bool:
    """Whether a block of addresses has all of another."""
    blocks = [each.get("ipBlock") for each in (one, other)]
    if not all(blocks) or blocks[0].get("except"):
        return False
    outer, inner = (ip_network(each["cidr"]) for each in blocks)
    return inner.network_address in outer and inner.prefixlen >= outer.prefixlen
