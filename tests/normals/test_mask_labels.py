"""Labels of components, found in bands of rows, compared with those of the whole mask."""

import numpy as np
import pytest
from scipy import ndimage

from normalmesh.normals import mask_labels
from normalmesh.normals.mask_labels import component_labels
from thread_counts import on_one_and_on_several


def masks():
    """Return masks whose components cross bands of two rows in all ways."""
    v, u = np.mgrid[:41, :30]
    rng = np.random.default_rng(5)
    shapes = {
        "full": u >= 0,
        "empty": u < 0,
        "comb, joined at the top": (u % 2 == 0) | (v == 0),
        "comb, joined at the bottom": (u % 2 == 0) | (v == 40),
        "snake": (u % 2 == 0) | (v == np.where(u % 4 == 1, 0, 40)),
        "rings": np.maximum(abs(u - 15), abs(v - 20)) % 2 == 0,
        "gaps": v % 3 > 0,
    }
    shapes |= {f"{share} missing": rng.random(u.shape) > share for share in (0.05, 0.4, 0.45, 0.7)}
    return shapes


@pytest.mark.parametrize("name", masks())
def test_bands_change_nothing_nor_do_threads(name, monkeypatch):
    monkeypatch.setattr(mask_labels, "BAND", 2)
    mask = masks()[name]
    expected, count = ndimage.label(mask, output=np.int32)
    for labels, found in on_one_and_on_several(lambda: component_labels(mask)):
        assert found == count
        assert labels.dtype == np.int32
        assert np.array_equal(labels, expected)
