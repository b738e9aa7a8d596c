"""Each thing is computed once in a reconstruction: noise, component labels, the clean map, and the means of faces."""

from collections import Counter

import numpy as np
import pytest

from normalmesh import NormalMap, Orthographic, reconstruct, reconstruct_tiled
from normalmesh.facets.face_means import FaceMeans
from normalmesh.normals import mask_labels
from normalmesh.normals import noise as noise_module
from scenes import scene
from surfaces import noisy

SIZE = 300


@pytest.fixture(scope="module")
def torn():
    """Return a noisy map with jumps, in two components."""
    whole = scene("steps", SIZE).normal_map(Orthographic())
    mask = np.ones((SIZE, SIZE), bool)
    mask[:, 40] = False
    return NormalMap(noisy(whole, 3.0).normals, mask)


@pytest.fixture
def calls(monkeypatch):
    """Return a counter of calls of what labels a mask, estimates and filters noise, and averages over a mesh."""
    counter, means = Counter(), FaceMeans.of

    def count(module, function, name):
        original = getattr(module, function)

        def counted(*arguments):
            counter[name] += 1
            return original(*arguments)

        monkeypatch.setattr(module, function, counted)

    def of(mesh, *arguments, planes_only=False):
        # Where bad faces are cut off, more is needed of a mesh than its planes.
        counter["means", planes_only, mesh.vertices.tobytes(), mesh.faces.tobytes()] += 1
        return means(mesh, *arguments, planes_only=planes_only)

    count(mask_labels, "_pairs", "labels")
    # Small and large loops of a component.
    count(noise_module, "_usual_deviation", "loops")
    count(noise_module, "_filtered", "filtered")
    monkeypatch.setattr(FaceMeans, "of", of)
    return counter


def test_in_memory(torn, calls):
    surface = reconstruct(torn, compression=0.96, prior=np.array([[200.5, 150.5, 3.0]]))
    assert surface.discontinuities.lines
    assert (calls["labels"], calls["loops"], calls["filtered"]) == (1, 2 * 2, 2)
    means = [number for name, number in calls.items() if name[0] == "means"]
    assert len(means) > 5
    # Where no bad face had to be cut off, the mesh is solved again as it is.
    assert sum(means) <= len(means) + 1


def test_in_tiles(torn, calls):
    """Tiles label their pixels once. What is filtered is not kept: windows of tasks are filtered when they are read."""
    reconstruct_tiled(torn, compression=0.96, tiles=256, workers=0)
    assert calls["loops"] == 2 * 2
    assert calls["labels"] == 4


def test_the_labels_of_a_map_are_those_of_its_mask(torn):
    labels, count = torn.component_labels
    assert count == 2
    assert np.array_equal(labels, np.where(torn.mask, 1 + (np.arange(SIZE) > 40), 0))
    whole = torn.crop((0, 41, SIZE, SIZE - 41))
    labels, count = whole.component_labels
    assert count == 1
    assert np.shares_memory(labels, whole.mask)
