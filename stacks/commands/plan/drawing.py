"""Nodes and their pods as SVG: GPUs, CPUs and memory of each node, with a piece for each pod."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from html import escape

from components.capacity.placement import RESOURCES, Node, Nodes, Workers, held, possible_pools
from core.quantities import shown
from stacks.planning.plan import Plan

_COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5", "#9c6b4e")
"""Observable's categorical palette."""

_WIDTH, _BAR, _GAP, _LABEL = 140, 16, 4, 18
_ASIDE = 150
"""Width for text beside a bar; on the bar's colours it could not be read."""

_NODE = _LABEL + len(RESOURCES) * (_BAR + _GAP) + 14
_ACROSS = 4
MOST_NODES = 64
"""The number of nodes of a pool that are drawn."""

_WORDS = ("GPUs", "CPU", "memory")


def svg(plan: Plan) -> str:
    """The nodes of each pool with the initial pods of the RayClusters, and then a node filled with each worker size."""
    colours = _colours(plan)
    parts: list[str] = []
    top = 30
    for title, nodes in _sections(plan):
        parts.append(f'<text x="10" y="{top}" class="title">{escape(title)}</text>')
        top += 12
        for index, node in enumerate(nodes):
            x, y = 10 + index % _ACROSS * (_WIDTH + _ASIDE), top + index // _ACROSS * _NODE
            parts += _node(node, x, y, colours)
        top += math.ceil(len(nodes) / _ACROSS) * _NODE + 24
    width = 10 + _ACROSS * (_WIDTH + _ASIDE)
    style = "text{font:12px sans-serif;fill:#222}.title{font-weight:bold;font-size:14px}.in{font-size:10px}"
    size = f'viewBox="0 0 {width} {top}" width="{width}" height="{top}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
        f"<title>Nodes and workers</title><style>{style}</style>"
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _sections(plan: Plan) -> Iterator[tuple[str, list[Node]]]:
    every = plan.started.nodes
    for pool in plan.pools:
        nodes = [node for node in every if node.pool.pool == pool.pool]
        more = f", the first {MOST_NODES} of {pool.count}" if pool.count > MOST_NODES else ""
        yield f"Pool {pool.pool} with what RayClusters start with{more}", nodes[:MOST_NODES]
    drawn: dict[tuple[object, ...], tuple[str, list[Node]]] = {}
    for tenant in plan.tenants:
        for cluster in tenant.clusters:
            sizes = [group.workers for group in cluster.groups if group.pools and group.workers.gpus]
            key = tuple((each.group, each.amounts) for each in sizes)
            if sizes and key not in drawn:
                drawn[key] = f"A node full of each size of {cluster.name}", list(_full(plan, sizes))
    yield from drawn.values()


def _full(plan: Plan, sizes: Iterable[Workers]) -> Iterator[Node]:
    for workers in sizes:
        pool = max(possible_pools(workers, plan.pools), key=lambda pool: held(workers, pool))
        nodes = Nodes([pool.model_copy(update={"count": 1})])
        nodes.grow([replace(workers, least=0, most=None)])
        yield nodes.nodes[0]


def _colours(plan: Plan) -> dict[tuple[str, str], str]:
    """By RayCluster and group."""
    names = [(cluster.name, group.workers.group) for cluster in plan.clusters for group in cluster.groups]
    return {name: _COLOURS[index % len(_COLOURS)] for index, name in enumerate(dict.fromkeys(names))}


def _node(node: Node, x: int, y: int, colours: dict[tuple[str, str], str]) -> Iterator[str]:
    yield f'<text x="{x}" y="{y + 13}">{escape(f"{node.pool.pool}-{node.number}")}</text>'
    for at, resource in enumerate(RESOURCES):
        taken = [pod.amounts[at] for pod in node.pods]
        whole = sum(taken, node.free[at])
        if not whole:
            continue
        top, left = y + _LABEL + at * (_BAR + _GAP), float(x)
        yield f'<rect x="{x}" y="{top}" width="{_WIDTH}" height="{_BAR}" fill="#eee" stroke="#999"/>'
        for pod, amount in zip(node.pods, taken, strict=True):
            width = float(amount / whole) * _WIDTH
            colour = colours.get((pod.owner, pod.group), "#888")
            about = escape(f"{pod.owner} {pod.group}: {_WORDS[at]} {shown(resource, amount)}")
            yield (
                f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_BAR}" fill="{colour}" stroke="#fff">'
                f"<title>{about}</title></rect>"
            )
            left += width
        free = f"{_WORDS[at]} {shown(resource, node.free[at])} of {shown(resource, whole)} free"
        yield f'<text x="{x + _WIDTH + 6}" y="{top + 12}" class="in">{escape(free)}</text>'
