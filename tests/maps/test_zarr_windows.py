"""Maps and masks in Zarr and OME-Zarr, of versions 2 and 3: as the same values in an NPY file."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

import normalmesh as nm
from normal_map_files import encode
from normalmesh.files import windowed_arrays
from surfaces import waves

zarr = pytest.importorskip("zarr")

SHAPE = (90, 130)
VALUES = encode(waves(SHAPE)[0].normals, np.uint16)
PLANES = np.moveaxis(VALUES, -1, 0)


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    monkeypatch.setattr(windowed_arrays, "PASS_PIXELS", 1600)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("zarr") / "map.npy"
    np.save(path, VALUES)
    return nm.read_normal_map(path)


def store(group, name, values, chunks):
    group.create_array(name, shape=values.shape, chunks=chunks, dtype=values.dtype)[...] = values


def write_array(path, values, chunks, version=3, **options):
    array = zarr.create_array(
        str(path), shape=values.shape, chunks=chunks, dtype=values.dtype, zarr_format=version, **options
    )
    array[...] = values


def write_ome(path, version, axes="tczyx", planes=PLANES[None, :, None]):
    """Write an image of two resolutions."""
    group = zarr.open_group(str(path), mode="w", zarr_format=version)
    store(group, "full", planes, (1,) * (planes.ndim - 2) + (32, 48))
    store(group, "half", planes[..., ::2, ::2], (1,) * (planes.ndim - 2) + (32, 48))
    image = [{"axes": [{"name": name} for name in axes], "datasets": [{"path": "full"}, {"path": "half"}]}]
    group.attrs.update({"multiscales": image} if version == 2 else {"ome": {"version": "0.5", "multiscales": image}})


def assert_same(whole, path, **options):
    opened = pickle.loads(pickle.dumps(nm.NormalMap.open(path, **options)))
    assert opened.read().normals.tobytes() == whole.normals.tobytes()
    rows, columns = slice(20, 71), slice(33, 129)
    assert opened.window(rows, columns).normals.tobytes() == whole.window(rows, columns).normals.tobytes()


@pytest.mark.parametrize("version", [2, 3])
def test_array(version, whole, tmp_path):
    write_array(tmp_path / "last.zarr", VALUES, (32, 48, 3), version)
    assert_same(whole, tmp_path / "last.zarr")
    write_array(tmp_path / "first.zarr", PLANES, (1, 40, 30), version)
    assert_same(whole, tmp_path / "first.zarr")


def test_sharded_array(whole, tmp_path):
    write_array(tmp_path / "map.zarr", VALUES, (16, 16, 3), shards=(64, 64, 3))
    assert_same(whole, tmp_path / "map.zarr")


@pytest.mark.parametrize("version", [2, 3])
def test_full_resolution_of_ome_zarr(version, whole, tmp_path):
    write_ome(tmp_path / "map.zarr", version)
    assert_same(whole, tmp_path / "map.zarr")


def test_group_with_a_mask(whole, tmp_path):
    group = zarr.open_group(str(tmp_path / "map.zarr"), mode="w")
    store(group, "normals", VALUES, (32, 48, 3))
    assert_same(whole, tmp_path / "map.zarr")
    assert_same(whole, tmp_path / "map.zarr", variable="normals")
    mask = np.zeros(SHAPE, np.uint8)
    mask[10:50, 20:90] = 1
    store(group, "mask", mask, (32, 32))
    assert nm.NormalMap.open(tmp_path / "map.zarr").rectangle() == (10, 20, 40, 70)
    np.save(tmp_path / "map.npy", VALUES)
    assert nm.NormalMap.open(tmp_path / "map.npy", mask=tmp_path / "map.zarr").rectangle() == (10, 20, 40, 70)
    write_array(tmp_path / "mask.zarr", mask.astype(bool), (32, 32))
    assert nm.NormalMap.open(tmp_path / "map.npy", mask=tmp_path / "mask.zarr").foreground == 2800


def refused(path, match, **options):
    with pytest.raises(nm.NormalMeshError, match=match):
        nm.NormalMap.open(path, **options)


def test_arrays_that_are_no_normal_map(tmp_path):
    write_array(tmp_path / "map.zarr", VALUES, (32, 48, 3))
    refused(tmp_path / "map.zarr", "is a single array", variable="normals")
    refused(tmp_path / "map.zarr", r"a mask must have the shape \(rows, columns\)", mask=tmp_path / "map.zarr")
    write_array(tmp_path / "flat.zarr", VALUES[..., 0], (32, 48))
    refused(tmp_path / "flat.zarr", r"normals must have the shape \(rows, columns, 3\)")
    write_ome(tmp_path / "stack.zarr", 3, planes=np.stack([PLANES, PLANES])[:, :, None])
    refused(tmp_path / "stack.zarr", "more than one image, along t")
    zarr.open_group(str(tmp_path / "empty.zarr"), mode="w")
    refused(tmp_path / "empty.zarr", "no array has the shape")
    (tmp_path / "map.zarr" / "zarr.json").write_text("{")
    refused(tmp_path / "map.zarr", "cannot be read as Zarr")


def test_missing_package_is_named(tmp_path, monkeypatch):
    write_array(tmp_path / "map.zarr", VALUES, (32, 48, 3))
    monkeypatch.setitem(sys.modules, "zarr", None)
    refused(tmp_path / "map.zarr", r"pip install normalmesh\[zarr\]")
