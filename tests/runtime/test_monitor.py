"""Test progress: the fraction never decreases and ends at one, and the callback can stop the work."""

import pytest

from normalmesh import Step, decimate, integrate, reconstruct
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.runtime.monitor import Monitor


def assert_valid_steps(steps, vertices):
    """Check that fractions rise from 0 to 1 and that only the last step is done."""
    shares = [step.share for step in steps]
    assert shares[0] == 0
    assert shares == sorted(shares)
    assert steps[-1] == Step(1.0, "done", vertices)
    assert all(step.share < 1 and step.stage not in ("", "done") for step in steps[:-1])


@pytest.mark.parametrize(
    "options", [{"vertices": 200}, {"threshold": 30.0}, {"vertices": 200, "preset": "paper"}], ids=str
)
def test_one_callback_for_all_stages(options):
    steps = []
    surface = reconstruct(Medallion(80).normal_map, **options, progress=steps.append)
    assert_valid_steps(steps, len(surface.vertices))
    stages = list(dict.fromkeys(step.stage for step in steps))
    refined = [] if "preset" in options else ["refine"]
    assert stages == ["noise", "jumps", "start", "collapse", "align", "solve", *refined, "done"]
    known = [step.vertices for step in steps if step.vertices is not None]
    assert known[0] > 5 * known[-1]
    assert known == sorted(known, reverse=True)


@pytest.mark.parametrize("refine", [0, 1, 4])
def test_integration_alone(refine):
    steps = []
    normal_map = Medallion(64).normal_map
    mesh = decimate(normal_map, vertices=150)
    surface = integrate(mesh, normal_map, refine=refine, progress=steps.append)
    assert_valid_steps(steps, len(surface.vertices))
    assert len(steps) > 4 + refine


@pytest.mark.parametrize("stage", ["noise", "jumps", "start", "collapse", "align", "solve", "refine", "done"])
def test_an_error_of_the_callback_stops_the_work(stage):
    steps = []

    def stop(step):
        steps.append(step)
        if step.stage == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reconstruct(Medallion(48).normal_map, vertices=100, progress=stop)
    assert [step.stage for step in steps].count(stage) == 1


def test_nested_monitors_report_fractions_of_the_whole():
    steps = []
    whole = Monitor(steps.append, 4.0)
    whole.begin("first")
    inner = Monitor(whole.part(2.0), 2.0)
    inner.advance(1.0, 7)
    inner.finish()
    whole.begin("last")
    whole.advance(9.0)
    whole.finish()
    assert [step.share for step in steps] == [0.0, 0.25, 0.5, 0.99, 1.0]
    assert steps[-1].vertices == 7
