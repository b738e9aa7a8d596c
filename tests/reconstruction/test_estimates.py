"""Estimates of memory and time, and the errors for what does not fit."""

import ctypes
import math
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import normalmesh as nm
from normalmesh import NormalMeshError, estimate_memory, reconstruct
from normalmesh.decimation.mask_counts import MaskCounts
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.reconstruction.estimates import Estimate
from normalmesh.runtime import memory_budget

#: Bytes that the process may use beyond a limit, such as the code of kernels.
TOLERANCE = 8e6


def textured(mask, roughness=0.0):
    """Return a map of gentle waves on a mask, with random normals on top."""
    v, u = np.mgrid[: mask.shape[0], : mask.shape[1]] / 12
    gradient = 0.4 * np.stack([np.cos(u) * np.sin(v), np.sin(u) * np.cos(v)])
    gradient += roughness * np.random.default_rng(0).normal(size=gradient.shape)
    return nm.NormalMap(_normals(*gradient), mask)


def _normals(right, down):
    normals = np.stack([-right, down, np.ones_like(right)], axis=-1)
    return (normals / np.linalg.norm(normals, axis=-1, keepdims=True)).astype(np.float32)


def comb(side):
    """Return a mask whose teeth and gaps are one pixel wide."""
    mask = np.zeros((side, side), np.bool_)
    mask[0], mask[:, ::2] = True, True
    return mask


def in_own_process(function, *arguments):
    """Return the result of a function in a new process, whose memory does not depend on what earlier tests left."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def peak_of(work):
    """Return the bytes that work uses at most in addition to what is in use before.

    Pages of libraries, which the system may have dropped and read again, do not count.
    """
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before, files = _status("VmRSS"), _status("RssFile")
    work()
    return _status("VmHWM") - before - max(_status("RssFile") - files, 0)


def _status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peaks of memory are measured on Linux")


def test_memory_is_positive_and_grows():
    for pixels, foreground, vertices in ((1, 1, 3), (10**6, 5 * 10**5, 10**4), (64 * 10**6, 64 * 10**6, 10**6)):
        estimate = estimate_memory((pixels, foreground), vertices=vertices)
        assert 0 < estimate <= estimate_memory((pixels, foreground), vertices=2 * vertices)
        assert estimate < estimate_memory((2 * pixels, foreground), vertices=vertices)
        assert estimate < estimate_memory((2 * pixels, 2 * foreground), vertices=vertices)
    assert estimate_memory((10**6, 10**6), vertices=5 * 10**5) > estimate_memory((10**6, 10**6), vertices=10**4)


def test_a_mask_tells_more_than_its_size():
    solid, thin = np.ones((500, 250), np.bool_), comb(500)
    assert estimate_memory(thin, vertices=2000) > 4 * estimate_memory(solid, vertices=2000)
    assert estimate_memory(thin, vertices=2000, discontinuities=False) < estimate_memory(thin, vertices=2000)
    assert estimate_memory((solid.size, solid.size), vertices=2000) >= estimate_memory(solid, vertices=2000)
    normal_map = Medallion(64).normal_map
    assert estimate_memory(normal_map, vertices=100) <= estimate_memory(normal_map.mask, vertices=100)


def test_rules_matter():
    mask = np.ones((600, 600), np.bool_)
    assert estimate_memory(mask, threshold=1e-4) > 5 * estimate_memory(mask, threshold=1.0)
    finest, default = estimate_memory(mask, max_error=0.01), estimate_memory(mask, compression=0.98)
    assert finest > 2 * default
    assert finest == pytest.approx(estimate_memory(mask, compression=0.75), rel=0.1)
    assert estimate_memory(mask, max_angle=1.0) == pytest.approx(default, rel=0.2)
    assert estimate_memory(mask, vertices=100, start="pixels") > estimate_memory(mask, vertices=100)


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (np.zeros((4, 4)), {"vertices": 9}, "with a foreground pixel"),
        ((0, 0), {"vertices": 9}, "number of pixels"),
        ((9, 12), {"vertices": 9}, "number of foreground pixels"),
        ((9, 9), {"vertices": 9, "threshold": 1.0}, "at most one of vertices, threshold, compression and detail"),
        ((9, 9), {"vertices": 9, "max_error": 1.0}, "max_error without vertices"),
        ((9, 9), {"max_angle": -1.0}, "max_angle"),
    ],
)
def test_what_cannot_be_estimated(given, options, message):
    with pytest.raises(NormalMeshError, match=message):
        estimate_memory(given, **options)


def test_seconds_grow():
    def seconds(foreground, vertices):
        return Estimate.of(MaskCounts.solid(foreground, foreground), StoppingRule(vertices=vertices)).seconds

    assert 0 < seconds(10**6, 10**4) < seconds(2 * 10**6, 10**4) < seconds(2 * 10**6, 10**5)
    counts, rule = MaskCounts.of(comb(300)), StoppingRule(vertices=1000)
    assert Estimate.of(counts, rule).seconds > 1.5 * Estimate.of(counts, rule, cuts=False).seconds
    one = Estimate.of(counts, rule)
    assert one.seconds < Estimate.levels(counts, [1000, 300]).seconds < 2 * one.seconds
    assert Estimate.within(counts, compared=True).seconds > Estimate.within(counts, compared=False).seconds


def test_too_large_is_refused_before_work_begins():
    normal_map = Medallion(64).normal_map
    reported = []
    with pytest.raises(NormalMeshError, match=r"needs about \d+ MB of memory but 5 MB are allowed \(memory_limit\); "):
        reconstruct(normal_map, vertices=100, memory_limit=5e6, progress=reported.append)
    for run in (nm.reconstruct_levels, nm.reconstruct_within):
        rule = {"vertices": [100, 50]} if run is nm.reconstruct_levels else {"max_error": 1.0}
        with pytest.raises(NormalMeshError, match="the reconstruction needs about"):
            run(normal_map, **rule, memory_limit=5e6, progress=reported.append)
    assert reported == []
    with pytest.raises(NormalMeshError, match=r"on the pixel grid.* needs about .*; mask or crop"):
        nm.integrate_pixels(Medallion(256).normal_map, memory_limit=5e6)


def test_thin_masks_are_refused_before_work_begins():
    reported = []
    with pytest.raises(NormalMeshError, match="the reconstruction needs about"):
        reconstruct(textured(comb(400)), vertices=1000, memory_limit=60e6, progress=reported.append)
    assert reported == []


def test_what_is_available_is_the_limit(monkeypatch):
    normal_map = Medallion(48).normal_map
    monkeypatch.setattr(memory_budget, "available_memory", lambda: 1000)
    with pytest.raises(NormalMeshError, match="1 MB are available"):
        reconstruct(normal_map, compression=0.9)
    for work in (nm.decimate, nm.reconstruct):
        with pytest.raises(NormalMeshError, match="1 MB are available"):
            work(normal_map, vertices=100)
    assert len(reconstruct(normal_map, vertices=100, memory_limit=math.inf).vertices) == 100
    monkeypatch.setattr(memory_budget, "available_memory", lambda: None)
    mesh = nm.decimate(normal_map, vertices=100)
    assert len(reconstruct(normal_map, vertices=100).vertices) == 100
    monkeypatch.setattr(memory_budget, "available_memory", lambda: 1000)
    with pytest.raises(NormalMeshError, match=r"the integration of 100 vertices needs .*; ask for fewer vertices"):
        nm.integrate(mesh, normal_map, discontinuities=False)
    with pytest.raises(NormalMeshError, match=r"the search for jumps .*; .*discontinuities=False \(--continuous\)"):
        nm.find_jumps(normal_map)


def estimate_and_peak(name):
    full = np.ones((300, 300), np.bool_)
    holes = np.random.default_rng(0).random((300, 300)) > 0.05
    mask = {"comb": comb(400), "holes": holes, "max_error": full}[name]
    rule = {"max_error": 2.0} if name == "max_error" else {"compression": 0.98}
    work = nm.reconstruct_within if name == "max_error" else reconstruct
    normal_map = textured(mask)
    work(normal_map, **rule)  # compiles the kernels
    estimate = estimate_memory(normal_map, **rule)
    return estimate, peak_of(lambda: work(normal_map, memory_limit=estimate + 1, **rule))


@on_linux
@pytest.mark.parametrize("name", ["comb", "holes", "max_error"])
def test_estimates_are_upper_bounds(name):
    estimate, peak = in_own_process(estimate_and_peak, name)
    assert peak <= estimate + TOLERANCE


def peak_before_limit(limit):
    """Return the peak of a reconstruction that stops because of a limit, and whether it had begun.

    A threshold leaves far more vertices on random normals than on typical ones.
    """
    options = {"threshold": 1.0, "discontinuities": False, "noise": 0.0}
    normal_map, reported = textured(np.ones((400, 400), np.bool_), roughness=1.0), []
    assert estimate_memory(normal_map, threshold=1.0, discontinuities=False) < limit

    def work():
        with pytest.raises(NormalMeshError, match=r"of \d+ vertices needs about .*; ask for .* a larger threshold"):
            reconstruct(normal_map, memory_limit=limit, progress=reported.append, **options)

    work()  # compiles the kernels
    return peak_of(work), bool(reported)


@on_linux
def test_work_stops_before_a_limit_that_the_content_exceeds():
    peak, had_begun = in_own_process(peak_before_limit, 60e6)
    assert peak <= 60e6 + TOLERANCE
    assert had_begun
