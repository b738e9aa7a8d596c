"""A fixed number of inputs for each target of the fuzzer, the same in each run. ``make fuzz`` tries more."""

import pytest
from fuzz import TARGETS
from hypothesis import HealthCheck, given, settings

#: As many as take some seconds.
INPUTS = {"files": 300, "chain": 150, "commands": 80}


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_crashes(target):
    inputs, carry_out = TARGETS[target]

    @settings(
        max_examples=INPUTS[target], derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
    )
    @given(inputs())
    def each(anything):
        carry_out(anything)

    each()
