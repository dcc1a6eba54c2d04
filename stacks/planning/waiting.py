"""Queues and quotas that cannot hold all of their RayClusters at the same time. Pure functions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from components.capacity.limits import Account, Accounts
from components.tenant.demand import Usage, total


@dataclass(frozen=True)
class TooSmall:
    """A queue or a quota in which not all of its RayClusters can run at the same time, even as they start."""

    name: str
    """`queue research`, or `the quota of team-a`."""

    needed: Usage
    """What they start with together, of the resources of which it has too little."""

    most: Usage
    """What it has of these."""

    waiting: tuple[str, ...]
    """Those that wait if they start in the order of the file."""


def too_small(starts: Mapping[str, Usage], accounts: Accounts) -> Iterator[TooSmall]:
    """The queues and quotas that are too small. `starts`: what each RayCluster starts with, by name."""
    counted: dict[int, tuple[Account, list[str]]] = {}
    for name in starts:
        for account in accounts[name]:
            counted.setdefault(id(account), (account, []))[1].append(name)
    for account, names in counted.values():
        needed = total(starts[name] for name in names)
        short = [entry for entry, most in account.limits.items() if needed.get(entry, Decimal(0)) > most]
        if short:
            of_all, of_account = ({entry: amounts[entry] for entry in short} for amounts in (needed, account.limits))
            yield TooSmall(account.name, of_all, of_account, tuple(_waiting(names, starts, account)))


def _waiting(names: list[str], starts: Mapping[str, Usage], account: Account) -> Iterator[str]:
    room = Account(account.limits)
    for name in names:
        if room.admits(starts[name], 1):
            room.take(starts[name])
        else:
            yield name
