"""Run each target of the fuzzer on a fixed number of inputs, the same in each run; ``make fuzz`` tries more."""

import pytest
from fuzz import TARGETS
from hypothesis import HealthCheck, given, settings

#: Number of inputs, which take some seconds.
INPUTS = {"files": 400, "chain": 150, "commands": 80, "measurements": 300, "operations": 250, "truth": 200}
#: Least fraction of the inputs that must not be refused: if all were, nothing behind the checks would be tested.
ACCEPTED = {"files": 0.1, "chain": 0.3, "commands": 0.1, "measurements": 0.4, "operations": 0.3, "truth": 0.9}


@pytest.mark.parametrize("target", TARGETS)
def test_no_input_fails(target):
    inputs, carry_out = TARGETS[target]

    @settings(
        max_examples=INPUTS[target], derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
    )
    @given(inputs())
    def each(anything):
        outcome = carry_out(anything)
        accepted.append(not outcome.startswith("refused") and not outcome.endswith((": 1", ": 2")))

    accepted: list[bool] = []
    each()
    assert sum(accepted) >= ACCEPTED[target] * len(accepted)
