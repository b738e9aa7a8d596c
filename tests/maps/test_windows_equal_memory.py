"""Maps on disk and in memory are read by the same rules: the same to the bit, with the same warnings."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st

import normalmesh as nm
from normal_map_files import write_png
from normalmesh.files import windowed_arrays

SHAPE = (61, 83)
V, U = np.indices(SHAPE)
#: Colours of backgrounds, as vectors.
COLOURS = {
    "black": (-1, -1, -1),
    "grey": (0, 0, 0),
    "flat": (0, 0, 1),
    "no normal": (0.3, 0.3, 0.3),
    "tilted": (0.6, 0, 0.8),
}
ENCODINGS = ["u1", "u2", "i1", "i2", "i4", "f2", "f4", "f8", "u1 in u2", "f4 from 0 to 1", "?"]
ALPHAS = {
    "two values": lambda inside: inside,
    "soft": lambda inside: np.clip(inside * (U - 10) / 20, 0, 1),
    "height": lambda inside: (U + V) / 150,
    "opaque": lambda inside: 1 + 0 * U,
    "transparent": lambda inside: 0 * U,
    "zero in the background": lambda inside: inside * (0.2 + U / 110),
    "premultiplied": lambda inside: inside * (0.2 + U / 110),
    "NaN in the background": lambda inside: np.where(inside, (40 + U) / 130, np.nan),
}
FILES = ["npy", "npy by columns", "tiles", "strips", "not compressed", "planes"]
MASKS = [
    "array",
    "npy",
    "zeros",
    "grey",
    "colour",
    "alpha",
    "ones",
    "labels",
    "half",
    "floats",
    "missing floats",
    "png",
]


def ball(background):
    """Return normals (H, W, 3) of a ball before a background of one colour; None: waves that fill the image."""
    if background is None:
        normals = np.dstack([0.3 * np.sin(U / 7), 0.4 * np.cos(V / 9 + U / 30), np.ones(SHAPE)])
        return normals / np.linalg.norm(normals, axis=2, keepdims=True), np.ones(SHAPE, bool)
    x, y = (U - 40) / 25, (30 - V) / 25
    inside = x**2 + y**2 < 1
    normals = np.dstack([x, y, np.sqrt(np.clip(1 - x**2 - y**2, 0, 1))])
    return np.where(inside[..., None], normals, COLOURS[background]), inside


def stored(normals, alpha, encoding, premultiplied):
    """Return components and opacity as values of a type."""
    if encoding == "f4 from 0 to 1":
        normals, encoding = (normals + 1) / 2, "f4"
    dtype, most = np.dtype(encoding.split()[-1]), 1
    if dtype.kind in "ui":
        most = 255 if encoding == "u1 in u2" else np.iinfo(dtype).max
        normals = np.nan_to_num(normals if dtype.kind == "i" else (normals + 1) / 2, posinf=1)
    colours = normals * np.where(alpha > 0, alpha, 1)[..., None] if premultiplied else normals
    values = colours if alpha is None else np.dstack([colours, alpha])
    values = np.rint(np.nan_to_num(values) * most) if most > 1 else values
    with np.errstate(invalid="ignore"):
        return values.astype(dtype)


def write_map(folder, values, kind):
    if kind.startswith("npy"):
        np.save(folder / "map.npy", np.asfortranarray(values) if "columns" in kind else values)
        return folder / "map.npy"
    options = {
        "tiles": {"tile": (16, 32), "compression": "zlib"},
        "strips": {"rowsperstrip": 5, "compression": "lzw" if values.dtype.kind != "?" else None},
        "not compressed": {},
        "planes": {"planarconfig": "separate", "tile": (32, 16)},
    }[kind]
    values = np.moveaxis(values, 2, 0) if kind == "planes" else values
    extra = ["unassalpha"] if values.shape[0 if kind == "planes" else 2] == 4 else None
    tifffile.imwrite(folder / "map.tif", values, photometric="rgb", extrasamples=extra, **options)
    return folder / "map.tif"


def write_mask(folder, mask, kind):
    if kind in ("array", "npy", "zeros"):
        mask = mask & (kind != "zeros")
        np.save(folder / "mask.npy", mask.astype(np.int16))
        return mask if kind == "array" else folder / "mask.npy"
    white = (255 * mask).astype(np.uint8)
    if kind == "png":
        return write_png(folder / "mask.png", white)
    values = {
        "grey": white,
        "colour": np.dstack([white, white // 2, 0 * white]),
        "alpha": np.dstack([white | 255, white | 255, white | 255, white]),
        "ones": mask.astype(np.uint8),
        "labels": (mask * (U % 7) * 36).astype(np.uint8),
        "half": np.where(mask, 128, 127).astype(np.uint8),
        "floats": (mask * (0.4 + U / 100)).astype(np.float32),
        "missing floats": np.where(mask, U / 80, np.nan).astype(np.float32),
    }[kind]
    photometric = "rgb" if values.ndim == 3 else "minisblack"
    extra = ["unassalpha"] if kind == "alpha" else None
    tifffile.imwrite(folder / "mask.tif", values, photometric=photometric, extrasamples=extra, rowsperstrip=9)
    return folder / "mask.tif"


def outcome(read):
    """Return the map or the message of the error, and the texts of the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = read()
        except nm.NormalMeshError as error:
            result = str(error)
    return result, [str(warning.message) for warning in caught]


@settings(max_examples=120)
@given(data=st.data(), encoding=st.sampled_from(ENCODINGS), pass_pixels=st.sampled_from([40, 300, 1600, 10_000]))
def test_random_files(data, encoding, pass_pixels, tmp_path_factory):
    folder = tmp_path_factory.mktemp("maps")
    rng = np.random.default_rng(data.draw(st.integers(0, 99), "seed"))
    normals, inside = ball(data.draw(st.sampled_from([None, *COLOURS]), "background"))
    normals = normals + data.draw(st.sampled_from([0, 0, 0.01, 0.05]), "noise") * rng.normal(size=normals.shape)
    holes = rng.random(SHAPE) < data.draw(st.sampled_from([0, 0.001, 0.1, 1]), "holes")
    normals[holes] = data.draw(st.sampled_from([np.nan, 0, np.inf, (0, 0, -1)]), "holes hold")
    alpha = data.draw(st.sampled_from([None, None, *ALPHAS]), "alpha")
    opacity = None if alpha is None else ALPHAS[alpha](inside).astype(float)
    values = stored(normals, opacity, encoding, alpha == "premultiplied")
    path = write_map(folder, values, "npy" if encoding == "f2" else data.draw(st.sampled_from(FILES), "file"))
    mask = data.draw(st.sampled_from([None, None, *MASKS]), "mask")
    mask = None if mask is None else write_mask(folder, np.hypot(U - 40, V - 30) < 28, mask)
    options = {
        "camera": data.draw(st.sampled_from([None, nm.Perspective.centred(70, SHAPE)]), "camera"),
        "convention": data.draw(st.sampled_from(["opengl", "opengl", "auto", "opencv"]), "convention"),
        "alpha": data.draw(st.sampled_from(["auto", "auto", "mask", "ignore"]), "use of alpha"),
    }
    whole, expected = outcome(lambda: nm.read_normal_map(path, mask, **options))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(windowed_arrays, "PASS_PIXELS", pass_pixels)
        opened, warned = outcome(lambda: nm.NormalMap.open(path, mask, **options))
        assert warned == expected
        if isinstance(whole, str):
            assert opened == whole
            return
        assert (opened.shape, opened.repairs, opened.foreground) == (whole.shape, whole.repairs, whole.foreground)
        assert opened.rectangle() == whole.rectangle()
        opened = pickle.loads(pickle.dumps(opened))
        for top, left, height, width in [(0, 0, *SHAPE), *rng.integers(1, 60, (4, 4))]:
            window = slice(top, top + height), slice(left, left + width)
            assert np.array_equal(opened.mask_window(*window), whole.mask_window(*window))
            part, same = opened.window(*window), whole.window(*window)
            assert (part is None) == (same is None)
            assert part is None or part.normals.tobytes() == same.normals.tobytes()
