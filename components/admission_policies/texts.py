"""What the rules of `policies/` say of themselves, and their options.

`policies/` knows components, and no component knows `policies/`: its texts come as a file, which
`python -m policies --list --write` makes.
"""

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("rules.json")
"""By id, of each rule that is enforced here: `what`, `fix` and `options` with their defaults."""


@dataclass(frozen=True)
class RuleText:
    """Of one rule."""

    what: str
    """What holds where it is kept."""

    fix: str
    """What to change where it is not."""

    options: dict[str, Any]
    """Its options, with their defaults."""


@functools.cache
def rule_texts() -> dict[str, RuleText]:
    """Those of all rules, by id."""
    return {id_: RuleText(**said) for id_, said in json.loads(FILE.read_text(encoding="utf-8")).items()}
