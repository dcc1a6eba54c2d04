"""Limits of pods other than nodes: quotas and queues, each with its own account."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from ..tenant.demand import Usage

_NONE = Decimal(0)


@dataclass
class Account:
    """The limits of a group of pods, and what is left of them."""

    limits: Mapping[str, Decimal]
    """The limits, by entries of a usage."""

    used: Usage = field(default_factory=dict)

    def admits(self, usage: Usage, at_most: int) -> int:
        """How many times the usage still fits, up to `at_most`."""
        for entry, most in self.limits.items():
            if not at_most:
                break
            left, one = most - self.used.get(entry, _NONE), usage.get(entry, _NONE)
            if left < one or left < 0:
                return 0
            if one:
                at_most = min(at_most, int(left // one))
        return at_most

    def take(self, usage: Usage, times: int = 1) -> None:
        """Subtracts the usage `times` times from the limits."""
        for entry in self.limits if times else ():
            if entry in usage:
                self.used[entry] = self.used.get(entry, _NONE) + usage[entry] * times


Accounts = Mapping[str, Sequence[Account]]
"""The accounts of pods, by their owner."""

NO_ACCOUNTS: Accounts = {}
