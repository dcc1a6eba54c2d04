"""The suites of tests, and the files of the checkout that decide how the tests of each end."""

from collections.abc import Mapping

from tests.suite_inputs.alone import ALONE
from tests.suite_inputs.of_stacks import OF_STACKS
from tests.suite_inputs.suite import Suite

SUITES: Mapping[str, Suite] = {**ALONE, **OF_STACKS}

__all__ = ["SUITES", "Suite"]
