"""Progress: steps that never fall, end at one, and can end the work."""

import pytest

from normalmesh import Step, decimate, integrate, reconstruct
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.runtime.monitor import Monitor


def assert_valid_steps(steps, vertices):
    shares = [step.share for step in steps]
    assert shares[0] == 0
    assert shares == sorted(shares)
    assert steps[-1] == Step(1.0, "done", vertices)
    assert all(step.share < 1 and step.stage not in ("", "done") for step in steps[:-1])


@pytest.mark.parametrize(
    "options", [{"vertices": 200}, {"threshold": 30.0}, {"vertices": 200, "preset": "paper"}], ids=str
)
def test_one_callback_for_the_whole_way(options):
    told = []
    surface = reconstruct(Medallion(80).normal_map, **options, progress=told.append)
    assert_valid_steps(told, len(surface.vertices))
    stages = list(dict.fromkeys(step.stage for step in told))
    assert stages == ["noise", "start", "collapse", "align", "solve"] + ["refine"] * ("preset" not in options) + [
        "done"
    ]
    known = [step.vertices for step in told if step.vertices is not None]
    assert known[0] > 5 * known[-1]
    assert known == sorted(known, reverse=True)


@pytest.mark.parametrize("refine", [0, 1, 4])
def test_integration_alone(refine):
    told = []
    normal_map = Medallion(64).normal_map
    mesh = decimate(normal_map, vertices=150)
    surface = integrate(mesh, normal_map, refine=refine, progress=told.append)
    assert_valid_steps(told, len(surface.vertices))
    assert len(told) > 4 + refine


@pytest.mark.parametrize("stage", ["noise", "start", "collapse", "align", "solve", "refine", "done"])
def test_what_the_callback_raises_ends_the_work(stage):
    told = []

    def stop(step):
        told.append(step)
        if step.stage == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reconstruct(Medallion(48).normal_map, vertices=100, progress=stop)
    assert [step.stage for step in told].count(stage) == 1


def test_parts_make_up_the_whole():
    told = []
    whole = Monitor(told.append, 4.0)
    whole.begin("first")
    inner = Monitor(whole.part(2.0), 2.0)
    inner.advance(1.0, 7)
    inner.finish()
    whole.begin("last")
    whole.advance(9.0)
    whole.finish()
    assert [step.share for step in told] == [0.0, 0.25, 0.5, 0.99, 1.0]
    assert told[-1].vertices == 7
