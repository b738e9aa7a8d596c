"""Alpha channels: masks where they look like one, else reported and ignored."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from normal_map_files import COLUMNS, ROWS, assert_reads, corner_mask, dome, encode, with_alpha, write_png
from normalmesh import NormalMeshError, NormalMeshWarning, read_normal_map
from normalmesh.maps.inspection import inspect_file

pytestmark = pytest.mark.usefixtures("no_diagnosis")


def gradient():
    """An alpha channel (12, 17) that takes many values, such as a height."""
    return np.linspace(10, 250, ROWS * COLUMNS).reshape(ROWS, COLUMNS)


def saved(folder, alpha):
    return write_png(folder / "n.png", with_alpha(encode(dome(), np.uint8), alpha))


def test_two_values_are_a_mask(tmp_path):
    assert_reads(saved(tmp_path, 255 * corner_mask()), 0.006, corner_mask())
    assert_reads(saved(tmp_path, 40 + 160 * corner_mask()), 0.006, corner_mask())


def test_soft_edges_are_allowed(tmp_path):
    alpha = 255 * corner_mask()
    alpha[5, :7] = 100
    assert_reads(saved(tmp_path, alpha), 0.006, corner_mask())


def test_other_values_are_reported_and_ignored(tmp_path):
    path = saved(tmp_path, gradient())
    with pytest.warns(NormalMeshWarning, match=r"n\.png: the alpha channel, from 10 to 250, does not look") as caught:
        assert read_normal_map(path).mask.all()
    assert [warning.filename for warning in caught] == [__file__]
    found = inspect_file(path)
    assert found.mask_source == "the pixels that hold a normal; alpha is ignored"
    assert "alpha='mask' takes it as one" in found.warnings[0]
    assert inspect_file(path, alpha="mask").mask_source == "the alpha channel"


def test_an_opaque_alpha_says_nothing(tmp_path):
    values = encode(dome(), np.uint8)
    values[:3] = 0
    path = write_png(tmp_path / "n.png", with_alpha(values, np.full((ROWS, COLUMNS), 255)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_normal_map(path).mask.sum() == (ROWS - 3) * COLUMNS


def test_zeros_that_match_the_background_are_a_mask(tmp_path):
    values = encode(dome(), np.uint8)
    values[~corner_mask()] = 0
    path = write_png(tmp_path / "n.png", with_alpha(values, np.where(corner_mask(), gradient(), 0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_reads(path, 0.006, corner_mask())


def test_the_caller_decides(tmp_path):
    path = saved(tmp_path, gradient())
    assert_reads(path, 0.006, gradient() >= 128, alpha="mask")
    assert_reads(path, 0.006, alpha="ignore")
    assert_reads(saved(tmp_path, 255 * corner_mask()), 0.006, alpha="ignore")
    assert_reads(path, 0.006, corner_mask(), alpha="mask", mask=corner_mask())


def test_floats(tmp_path):
    np.save(tmp_path / "n.npy", np.dstack([dome(), corner_mask()]))
    assert_reads(tmp_path / "n.npy", 1e-6, corner_mask())
    np.save(tmp_path / "n.npy", np.dstack([dome(), gradient() / 255]))
    with pytest.warns(NormalMeshWarning, match="does not look like a mask"):
        assert_reads(tmp_path / "n.npy", 1e-6)


def test_what_is_refused(tmp_path):
    with pytest.raises(NormalMeshError, match="alpha must be 'auto', 'mask' or 'ignore', not 'yes'"):
        read_normal_map(saved(tmp_path, gradient()), alpha="yes")
    with pytest.raises(NormalMeshError, match=r"n\.png: has no alpha channel that could be the mask"):
        read_normal_map(write_png(tmp_path / "n.png", encode(dome(), np.uint8)), alpha="mask")
