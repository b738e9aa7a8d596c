"""Run each target of the fuzzer on a fixed number of inputs, the same in each run; ``make fuzz`` tries more."""

import pytest
from fuzz import TARGETS
from hypothesis import HealthCheck, given, settings

#: Number of inputs, which take some seconds.
INPUTS = {"files": 300, "chain": 150, "commands": 80}


@pytest.mark.parametrize("target", TARGETS)
def test_no_input_fails(target):
    inputs, carry_out = TARGETS[target]

    @settings(
        max_examples=INPUTS[target], derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
    )
    @given(inputs())
    def each(anything):
        carry_out(anything)

    each()
