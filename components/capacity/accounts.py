"""What bounds pods beside the nodes: quotas and queues, each counted in an account of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from ..tenant.demand import Usage

_NONE = Decimal(0)


@dataclass
class Account:
    """What some pods may take together."""

    limits: Mapping[str, Decimal]
    """The most, by entries of a usage."""

    used: Usage = field(default_factory=dict)

    def admits(self, usage: Usage, at_most: int) -> int:
        """How many times it may be taken, up to `at_most`."""
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
        """Note that it is taken so many times, as far as there is a limit."""
        for entry in self.limits if times else ():
            if entry in usage:
                self.used[entry] = self.used.get(entry, _NONE) + usage[entry] * times


Accounts = Mapping[str, Sequence[Account]]
"""By owner of pods, what these are counted in."""

NO_ACCOUNTS: Accounts = {}
