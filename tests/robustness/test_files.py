"""Test that every reader reads a damaged file, or raises a NormalMeshError of one line."""

from __future__ import annotations

import io
import json
import logging
import os
import random
import struct
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import imagecodecs
import numpy as np
import PIL.Image
import pytest
import scipy.io
import tifffile
import trimesh
from fuzz_files import originals

from invocation import invoke, write_medallion
from mat_files import mat_array, mat_element, mat_file
from normal_map_files import corner_mask, dome, encode, layer, with_alpha, write_exr
from normalmesh import NormalMeshError, read_lights
from normalmesh.evaluation.rendering.triangle_model import TriangleModel
from normalmesh.files.masks import read_mask
from normalmesh.maps.cameras import read_camera_matrix
from normalmesh.maps.map_decoding import decode_map
from normalmesh.maps.point_files import read_control_points
from normalmesh.maps.stored_normals import read_array
from normalmesh.output.heights import read_depth_map
from normalmesh.output.mesh_writing import convert_mesh
from normalmesh.output.textures import colour_image
from normalmesh.photometric.photographs import photographs

#: Number of damaged copies of each file, besides truncated ones.
MUTATIONS = 40
#: Files are truncated at every byte, or at about this number of places.
TRUNCATIONS = 250


def normals(path: Path) -> None:
    decode_map(read_array(path), None, "auto")


def converted(path: Path) -> None:
    for suffix in (".obj", ".stl"):
        convert_mesh(path, path.with_name(f"out{suffix}"))


def written(write: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def exr(channels: dict[str, np.ndarray], folder: Path) -> bytes:
    return write_exr(folder / "whole.exr", channels).read_bytes()


def textured_box() -> trimesh.Trimesh:
    box = trimesh.creation.box()
    material = trimesh.visual.material.SimpleMaterial(image=PIL.Image.new("RGB", (4, 4)))
    visual = trimesh.visual.TextureVisuals(uv=box.vertices[:, :2], material=material)
    return trimesh.Trimesh(box.vertices, box.faces, process=False, visual=visual)


FILES: dict[str, tuple[str, Callable[[Path], bytes], list[Callable[[Path], object]]]] = {
    "png": (
        ".png",
        lambda _: imagecodecs.png_encode(with_alpha(encode(dome(), np.uint8), 255 * corner_mask())),
        [normals, read_mask, colour_image, lambda path: photographs([path] * 3)],
    ),
    "jpeg": (".jpg", lambda _: imagecodecs.jpeg8_encode(encode(dome(), np.uint8)), [normals, read_mask, colour_image]),
    "tiff": (
        ".tif",
        lambda _: written(
            lambda file: tifffile.imwrite(file, encode(dome(), np.uint16), photometric="rgb", compression="zlib")
        ),
        [normals, read_mask],
    ),
    "exr": (".exr", lambda folder: exr(layer(dome()), folder), [normals]),
    "cmyk jpeg": (".jpg", lambda _: originals()["cmyk jpeg"][0], [colour_image, normals, read_mask]),
    "tiff of pages": (".tif", lambda _: originals()["tiff of pages"][0], [normals, read_mask, read_depth_map]),
    "exr of parts": (".exr", lambda _: originals()["exr of parts"][0], [normals, read_depth_map]),
    "depth exr": (".exr", lambda folder: exr({"Z": dome()[..., 0].astype("f4")}, folder), [read_depth_map]),
    "npy": (".npy", lambda _: written(lambda file: np.save(file, dome().astype("f4"))), [normals]),
    "npz": (
        ".npz",
        lambda _: written(lambda file: np.savez_compressed(file, normals=dome(), mask=corner_mask())),
        [normals],
    ),
    "mat": (
        ".mat",
        lambda _: written(lambda file: scipy.io.savemat(file, {"normals": dome().astype("f4"), "mask": corner_mask()})),
        [normals],
    ),
    "packed mat": (
        ".mat",
        lambda _: written(
            lambda file: scipy.io.savemat(file, {"depth": dome()[..., 0], "s": {"a": 1}}, do_compression=True)
        ),
        [read_depth_map],
    ),
    "ply": (".ply", lambda _: trimesh.exchange.ply.export_ply(trimesh.creation.box()), [converted, TriangleModel.of]),
    "stl": (".stl", lambda _: trimesh.exchange.stl.export_stl(trimesh.creation.box()), [converted]),
    "obj": (".obj", lambda _: trimesh.exchange.obj.export_obj(trimesh.creation.box()).encode(), [converted]),
    "glb": (".glb", lambda _: trimesh.exchange.gltf.export_glb(textured_box()), [TriangleModel.of]),
    "matrix": (".txt", lambda _: b"500 0 320\n0 500 240\n0 0 1\n", [read_camera_matrix]),
    "json": (".json", lambda _: b'{"K": [[500,0,320],[0,500,240],[0,0,1]]}', [read_camera_matrix]),
    "yaml": (
        ".yml",
        lambda _: (
            b"%YAML:1.0\ncamera_matrix: !!opencv-matrix\n rows: 3\n cols: 3\n dt: d\n data: [5,0,3,0,5,2,0,0,1]\n"
        ),
        [read_camera_matrix],
    ),
    "lights": (".txt", lambda _: b"0.1 0.2 0.9\n# x\n0.3,0.1,0.8\n", [read_lights]),
    "prior": (".csv", lambda _: b"u,v,depth,weight\n1,2,3,1\n4.5;2;1e3;2\n", [read_control_points]),
}


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Return a copy in which some bytes are changed, removed or inserted, more often in the header."""
    copy = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 8])):
        place = chance.randrange(min(len(copy), chance.choice([300, len(copy)])) or 1)
        kind = chance.randrange(5)
        if kind == 0:
            copy[place : place + 1] = chance.randbytes(1)
        elif kind == 1:
            copy[place : place + 4] = chance.choice([b"\xff" * 4, bytes(4), b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f"])
        elif kind == 2:
            del copy[place : place + chance.randrange(1, 9)]
        elif kind == 3:
            copy[place:place] = chance.randbytes(chance.randrange(1, 9))
        else:
            copy[place : place + 2] = chance.choice([b"-1", b"99", b"1e", b"\r\n"])
    return bytes(copy)


@pytest.fixture
def quiet() -> Iterator[None]:
    """Disable the log messages of decoders about damaged files."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def check(path: Path, content: bytes, readers: list[Callable[[Path], object]]) -> None:
    """Check that readers accept a file, or refuse it with one line that names it."""
    path.write_bytes(content)
    for reader in readers:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reader(path)
        except NormalMeshError as error:
            message = str(error)
        else:
            continue
        assert len(message.splitlines()) == 1
        assert len(message) < 1000
        assert path.name in message


@pytest.mark.parametrize("kind", FILES)
def test_truncated_files(tmp_path: Path, kind: str, quiet: None) -> None:
    suffix, make, readers = FILES[kind]
    content = bytes(make(tmp_path))
    for length in range(0, len(content), max(len(content) // TRUNCATIONS, 1)):
        check(tmp_path / f"truncated{suffix}", content[:length], readers[:1])


@pytest.mark.parametrize("kind", FILES)
def test_damaged_bytes(tmp_path: Path, kind: str, quiet: None) -> None:
    suffix, make, readers = FILES[kind]
    content, chance = bytes(make(tmp_path)), random.Random(kind)
    for _ in range(MUTATIONS):
        check(tmp_path / f"damaged{suffix}", damaged(content, chance), readers)
        # The first bytes of the format, then random ones.
        check(tmp_path / f"damaged{suffix}", content[: chance.choice([8, 26, 128])] + chance.randbytes(200), readers)


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("other", ["png", "npy", "ply", "matrix"])
def test_another_format_under_the_name(tmp_path: Path, kind: str, other: str, quiet: None) -> None:
    suffix, _, readers = FILES[kind]
    check(tmp_path / f"other{suffix}", bytes(FILES[other][1](tmp_path)), readers)


@pytest.mark.parametrize("kind", FILES)
def test_folders_pipes_loops_empty_and_missing_files(tmp_path: Path, kind: str) -> None:
    suffix, _, readers = FILES[kind]
    (tmp_path / f"folder{suffix}").mkdir()
    os.mkfifo(tmp_path / f"pipe{suffix}")
    (tmp_path / f"loop{suffix}").symlink_to(tmp_path / f"loop{suffix}")
    (tmp_path / f"empty{suffix}").touch()
    for name, reason in {
        "folder": "is a folder",
        "pipe": "not an ordinary file",
        "loop": "cannot be opened",
        "empty": "is empty",
        "missing": "no such file",
        "null\0": "null",
    }.items():
        for reader in readers:
            with pytest.raises(NormalMeshError, match=reason):
                reader(tmp_path / f"{name}{suffix}")


def test_commands_do_not_wait_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    pipe, source = tmp_path / "pipe", write_medallion(tmp_path / "n.png")
    for arguments in (
        ("inspect", pipe),
        ("reconstruct", pipe),
        *(("reconstruct", source, option, pipe) for option in ("--mask", "--prior", "--texture", "--camera")),
        ("evaluate", pipe, "--normals", source),
        ("convert", pipe, tmp_path / "depth.npy"),
        ("render", pipe, "-o", tmp_path / "rendered.png"),
        ("view", pipe, "--no-browser"),
    ):
        result = invoke(*arguments)
        assert result.exit_code == 1
        assert "is not an ordinary file" in result.stderr


def test_deeply_nested_cells_of_a_mat_file_are_skipped(tmp_path: Path) -> None:
    """Ten thousand nested cells would crash the process in the reader of SciPy."""
    numbers = mat_element(9, np.ones(12).tobytes())
    nested = mat_array(b"", (1, 1), mat_element(9, bytes(8)))
    for _ in range(10_000):
        nested = mat_array(b"", (1, 1), nested, array_class=1)
    cells = mat_array(b"normals", (1, 1), nested, array_class=1)
    path = tmp_path / "n.mat"
    path.write_bytes(mat_file(cells, mat_array(b"normals", (2, 2, 3), numbers)))
    assert read_array(path).size == (2, 2)
    path.write_bytes(mat_file(cells))
    with pytest.raises(NormalMeshError, match="no array has the shape"):
        read_array(path)


@pytest.mark.parametrize("is_big", [False, True])
def test_a_tiff_with_a_cycle_of_pages(tmp_path: Path, is_big: bool, quiet: None) -> None:
    """Such pages, if they are empty, would put tifffile into an endless loop."""
    path = tmp_path / "n.tif"
    tifffile.imwrite(path, encode(dome(), np.uint8), photometric="rgb", metadata=None, bigtiff=is_big)
    normals(path)
    content = bytearray(path.read_bytes())
    count, entry, place = ("<Q", 20, "<Q") if is_big else ("<H", 12, "<I")
    (first,) = struct.unpack_from(place, content, 8 if is_big else 4)
    (entries,) = struct.unpack_from(count, content, first)
    following = first + struct.calcsize(count) + entry * entries
    for target in (first, len(content)):
        struct.pack_into(place, content, following, target)
        # At the end, a page without entries that is followed by itself.
        path.write_bytes(content + struct.pack(count, 0) + struct.pack(place, len(content)) + bytes(16))
        with pytest.raises(NormalMeshError, match="its pages have no end"):
            normals(path)


@pytest.mark.parametrize("shape", [(-2, -2, 3), (2, 2, 4), (1, 1, 3), (2**31 - 1, 0, 3)])
def test_a_mat_file_with_wrong_dimensions(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = tmp_path / "n.mat"
    path.write_bytes(mat_file(mat_array(b"normals", shape, mat_element(9, np.ones(12).tobytes()))))
    with pytest.raises(NormalMeshError, match=r"n\.mat"):
        read_array(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"[" * 100_000, "is not valid JSON"),
        (b'{"fx": ' + b"1" * 5000 + b', "fy": 1, "cx": 1, "cy": 1}', "is not valid JSON"),
        (b'{"fx": ' + b"1" * 4000 + b', "fy": 1, "cx": 1, "cy": 1}', "3×3 numbers"),
        (b"{" + b",".join(b'"%d\\n": 1' % k for k in range(9999)) + b"}", "expected one of"),
        (b"\n" * 200_000 + b"x", "not valid JSON"),
    ],
)
def test_json_with_extreme_nesting_and_numbers(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "K.json").write_bytes(content)
    with pytest.raises(NormalMeshError, match=reason) as caught:
        read_camera_matrix(tmp_path / "K.json")
    assert len(str(caught.value)) < 1000
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"\n" * 10**6 + b"x", b"a:" + b" " * 10**6, b"a: rows: 3 cols: 3 data: [" * 40_000]
)
def test_a_long_camera_file_is_searched_in_linear_time(tmp_path: Path, content: bytes) -> None:
    """A regular expression that backtracks over blanks would take hours."""
    (tmp_path / "K.yml").write_bytes(content)
    with pytest.raises(NormalMeshError, match=r"K\.yml"):
        read_camera_matrix(tmp_path / "K.yml")


def test_an_array_of_the_wrong_shape_is_no_camera(tmp_path: Path) -> None:
    np.save(tmp_path / "K.npy", np.zeros((50, 50)))
    with pytest.raises(NormalMeshError, match="3×3, not 50×50"):
        read_camera_matrix(tmp_path / "K.npy")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"1,2,3\r\n4,junk,6\r\n", "line 2: '4 junk 6' are not all finite"),
        (b"\xef\xbb\xbfu,v,depth\r\n1,2,3\r\n1,2\r\n", "line 3: expected u,v,depth"),
        (b"1,2,3\n" + b"9" * 10**6 + b",1\n", "line 2"),
        (b"1,2,3\n1" + b" " * 10**6 + b"2\n", "line 2: expected"),
        (b"1,2,3\n\n#\n1,2,inf\n", "line 4"),
        (b"1,2,3\n1,2,3,4\n", "line 2: has 4 numbers but lines before have 3"),
        ("u,v,depth\n1,2,3\n".encode("utf-16"), "no text in UTF-8"),
        ("größe,v,depth\n1,2,3\n".encode("latin-1"), "no text in UTF-8"),
        (b"\0\0\0\n", "holds no control point|line 1"),
    ],
)
def test_invalid_control_points_are_reported_with_their_line(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "points.csv").write_bytes(content)
    with pytest.raises(NormalMeshError, match=reason) as caught:
        read_control_points(tmp_path / "points.csv")
    assert len(str(caught.value)) < 1000
    result = invoke("reconstruct", write_medallion(tmp_path / "n.png"), "--prior", tmp_path / "points.csv")
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1


def test_byte_order_marks_and_other_line_ends_are_read(tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_bytes(b"\xef\xbb\xbfu,v,depth\r\n1,2,3\r\n4;5;6\r\n")
    assert read_control_points(tmp_path / "points.csv").tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("outside", ["../secret.png", "{folder}/secret.png", "pipe.png"])
def test_a_mesh_reads_nothing_outside_its_folder(tmp_path: Path, outside: str) -> None:
    folder = tmp_path / "upload"
    folder.mkdir()
    PIL.Image.new("RGB", (3, 3), "red").save(tmp_path / "secret.png")
    os.mkfifo(folder / "pipe.png")
    (folder / "m.mtl").write_text(f"newmtl m\nmap_Kd {outside.format(folder=tmp_path)}\n")
    (folder / "m.obj").write_text("mtllib m.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nusemtl m\nf 1/1 2/1 3/1\n")
    convert_mesh(folder / "m.obj", tmp_path / "m.glb")
    assert b"image/" not in (tmp_path / "m.glb").read_bytes()


def test_indices_of_a_mesh_are_checked(tmp_path: Path) -> None:
    head = "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
    head += "element face 1\nproperty list uchar int vertex_indices\nend_header\n"
    for points, face in (("0 0 0\n1 0 0\n0 1 0\n", "3 0 1 7"), ("0 0 0\n1 0 0\n0 nan 0\n", "3 0 1 2")):
        (tmp_path / "m.ply").write_text(f"{head}{points}{face}\n")
        for suffix in (".ply", ".obj", ".glb", ".stl"):
            with pytest.raises(NormalMeshError, match=r"there are 3 vertices|not finite"):
                convert_mesh(tmp_path / "m.ply", tmp_path / f"out{suffix}")


def test_messages_of_decoders_do_not_mix_with_json(tmp_path):
    pytest.importorskip("OpenEXR")
    path = tmp_path / "n.exr"
    write_exr(path, {"RGB": dome().astype(np.float32)})
    path.write_bytes(path.read_bytes()[:-100])
    assert "pixels are missing" in json.loads(invoke("inspect", "--json", path).stdout)["error"]
