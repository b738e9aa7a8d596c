"""Test that images and arrays of huge size are refused by their headers, before they are decoded."""

from __future__ import annotations

import io
import json
import struct
import threading
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import imagecodecs
import numpy as np
import PIL.Image
import pytest
import tifffile

from invocation import invoke, write_medallion
from mat_files import mat_array, mat_element, mat_file
from normal_map_files import dome, encode, layer, write_exr, write_png
from normalmesh import NormalMeshError, read_normal_map
from normalmesh.evaluation.rendering.triangle_model import TriangleModel
from normalmesh.files import size_limits
from normalmesh.files.masks import read_mask
from normalmesh.maps.inspection import inspect_file
from normalmesh.maps.stored_normals import read_array, read_size
from normalmesh.output.heights import read_depth_map
from normalmesh.output.textures import colour_image
from normalmesh.photometric.photographs import photographs

HUGE = 10**6


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(columns: int, rows: int) -> bytes:
    head = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def jpeg(columns: int, rows: int) -> bytes:
    content = bytearray(imagecodecs.jpeg8_encode(np.zeros((16, 16, 3), np.uint8)))
    frame = content.find(b"\xff\xc0")
    content[frame + 5 : frame + 9] = struct.pack(">HH", rows, columns)
    return bytes(content)


def tiff(columns: int, rows: int) -> bytes:
    file = io.BytesIO()
    tifffile.imwrite(file, np.zeros((4, 4, 3), np.uint8), photometric="rgb", compression="zlib", metadata=None)
    content = bytearray(file.getvalue())
    with tifffile.TiffFile(io.BytesIO(content)) as written:
        places = [written.pages[0].tags[tag].offset for tag in (256, 257)]
    for place, value in zip(places, (columns, rows), strict=True):
        content[place + 2 : place + 12] = struct.pack("<HII", 4, 1, value)
    return bytes(content)


def exr(columns: int, rows: int, folder: Path) -> bytes:
    content = write_exr(folder / "whole.exr", layer(dome())).read_bytes()
    return content.replace(struct.pack("<4i", 0, 0, 16, 11), struct.pack("<4i", 0, 0, columns - 1, rows - 1))


def npy(columns: int, rows: int) -> bytes:
    file = io.BytesIO()
    head = {"descr": "<f4", "fortran_order": False, "shape": (rows, columns, 3)}
    np.lib.format.write_array_header_1_0(file, head)
    return file.getvalue() + bytes(100)


def npz(member: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("normals.npy", member)
    return file.getvalue()


def mat(columns: int, rows: int) -> bytes:
    return mat_file(mat_array(b"normals", (rows, columns, 3), mat_element(9, bytes(96))))


def huge(folder: Path) -> dict[str, bytes]:
    return {
        ".png": png(HUGE, HUGE),
        ".jpg": jpeg(65535, 65535),
        ".tif": tiff(HUGE, HUGE),
        ".exr": exr(HUGE, HUGE, folder),
        ".npy": npy(HUGE, HUGE),
        ".npz": npz(npy(HUGE, HUGE)),
        ".mat": mat(HUGE, HUGE),
    }


def large(folder: Path) -> dict[str, bytes]:
    return {
        ".png": png(30_000, 30_000),
        ".jpg": jpeg(30_000, 30_000),
        ".tif": tiff(30_000, 30_000),
        ".exr": exr(30_000, 30_000, folder),
        ".npz": npz(npy(30_000, 30_000)),
        ".mat": mat(30_000, 30_000),
    }


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".exr", ".npy", ".npz", ".mat"])
def test_a_huge_header_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"n{suffix}"
    path.write_bytes(huge(tmp_path)[suffix])
    readers: list[Callable[[Path], object]] = [read_normal_map, inspect_file]
    if suffix in (".png", ".jpg", ".tif"):
        readers += [read_mask, lambda path: photographs([path] * 3)]
    if suffix in (".png", ".jpg"):
        readers += [colour_image]
    for reader in readers:
        with pytest.raises(NormalMeshError, match=r"claims \d+ × \d+ pixels, more than the limit .*--max-pixels"):
            reader(path)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".exr", ".npz", ".mat"])
def test_a_dry_run_reads_only_the_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    """The files have no pixels; all of them count as foreground."""
    monkeypatch.setattr(size_limits, "MAX_COMPRESSION", 10**9)
    monkeypatch.setattr(size_limits, "available_memory", lambda: 10**12)
    path = tmp_path / f"n{suffix}"
    path.write_bytes(large(tmp_path)[suffix])
    result = invoke("reconstruct", path, "--dry-run", "--vertices", 500)
    assert result.exit_code == 0, result.output
    assert "30000 × 30000 pixels, at most 100.0 % foreground (900000000); only the header was read" in result.stdout
    assert "needs        at most about" in result.stdout
    content = json.loads(invoke("reconstruct", path, "--dry-run", "--json").stdout)
    assert (content["size"], content["exact"], content["foreground"]) == ([30_000, 30_000], False, 9 * 10**8)
    path.write_bytes(huge(tmp_path)[suffix])
    result = invoke("reconstruct", path, "--dry-run")
    assert result.exit_code == 1
    assert "more than the limit" in result.stderr


def test_the_size_of_any_file_is_in_its_header(tmp_path: Path) -> None:
    values = encode(dome(), np.uint8)
    write_png(tmp_path / "n.png", values)
    (tmp_path / "n.jpg").write_bytes(imagecodecs.jpeg8_encode(values))
    tifffile.imwrite(tmp_path / "n.tif", values, photometric="rgb")
    tifffile.imwrite(tmp_path / "planes.tif", np.moveaxis(values, -1, 0), photometric="rgb", planarconfig="separate")
    write_exr(tmp_path / "n.exr", layer(dome()))
    np.save(tmp_path / "n.npy", dome())
    np.savez(tmp_path / "n.npz", normals=dome(), mask=np.ones((12, 17)))
    for path in tmp_path.iterdir():
        assert read_size(path) == read_array(path).size == (12, 17)


@pytest.mark.parametrize("suffix", [".png", ".tif", ".exr", ".npy", ".npz", ".mat"])
def test_images_larger_than_memory_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    monkeypatch.setattr(size_limits, "available_memory", lambda: 10**9)
    monkeypatch.setattr(size_limits, "MAX_COMPRESSION", 10**9)
    path = tmp_path / f"n{suffix}"
    if suffix == ".npy":  # it is memory-mapped, and sparse on disk
        content = npy(30_000, 30_000)
        with path.open("wb") as file:
            file.write(content)
            file.truncate(len(content) + 4 * 3 * 30_000**2)
    else:
        path.write_bytes(large(tmp_path)[suffix])
    # Finding the encoding would read the whole file first.
    monkeypatch.setattr("normalmesh.maps.decoding.find_encoding", lambda *_: None)
    with pytest.raises(NormalMeshError, match=r"takes .* GB of memory to read but 1.0 GB are available"):
        read_normal_map(path)


@pytest.mark.parametrize("read", [read_normal_map, inspect_file])
def test_the_limit_is_an_argument(tmp_path: Path, read: Callable[..., object]) -> None:
    path = write_medallion(tmp_path / "n.png")
    with pytest.raises(NormalMeshError, match="more than the limit of 9215; "):
        read(path, max_pixels=9215)
    read(path, max_pixels=9216)
    for nonsense in (0, -1, float("nan"), "many", True):
        with pytest.raises(NormalMeshError, match="max_pixels must be a positive number"):
            read(path, max_pixels=nonsense)


def test_the_limit_of_depth_maps(tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", np.ones((4, 5)))
    assert read_depth_map(tmp_path / "d.npy", max_pixels=20).shape == (4, 5)
    with pytest.raises(NormalMeshError, match="claims 5 × 4 pixels"):
        read_depth_map(tmp_path / "d.npy", max_pixels=19)


def test_the_limit_holds_for_masks_and_can_be_set_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, mask = write_png(tmp_path / "n.png", encode(dome(), np.uint8)), tmp_path / "mask.png"
    write_png(mask, np.full((50, 50), 255, np.uint8))
    with pytest.raises(NormalMeshError, match=r"mask\.png: claims 50 × 50"):
        read_normal_map(path, mask, max_pixels=300)
    monkeypatch.setenv(size_limits.VARIABLE, "100")
    with pytest.raises(NormalMeshError, match=r"n\.png: claims 17 × 12"):
        read_array(path)
    with size_limits.limited_pixels(1e3):
        assert read_array(path).size == (12, 17)
    monkeypatch.setenv(size_limits.VARIABLE, "plenty")
    with pytest.raises(NormalMeshError, match=f"{size_limits.VARIABLE} must be a positive number"):
        read_array(path)


def test_the_limit_of_commands(tmp_path: Path) -> None:
    path = write_medallion(tmp_path / "n.png")
    for arguments in (
        ("inspect", path),
        ("reconstruct", path),
        ("reconstruct", path, "--dry-run"),
        ("evaluate", path, "--normals", path),
        ("view", path, "--no-browser"),
        ("convert", path, tmp_path / "d.npy"),
    ):
        result = invoke(*arguments, "--max-pixels", 9000)
        assert result.exit_code == 1
        assert "claims 96 × 96 pixels, more than the limit of 9000" in result.stderr
    assert invoke("inspect", path, "--max-pixels", "0").exit_code == 2
    assert invoke("inspect", path, "--max-pixels", "1e4").exit_code == 0
    assert size_limits.pixel_limit() == size_limits.MAX_PIXELS


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".exr", ".npz", ".mat"])
def test_a_file_that_is_too_short_for_its_size(tmp_path: Path, suffix: str) -> None:
    """The size is within the limit, but decoders would fill in the missing pixels."""
    path = tmp_path / f"n{suffix}"
    path.write_bytes(large(tmp_path)[suffix])
    for read in (read_array, colour_image) if suffix in (".png", ".jpg") else (read_array,):
        with pytest.raises(NormalMeshError, match="too short for the 30000 × 30000 pixels"):
            read(path)


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_long_header_of_an_array_is_not_read(tmp_path: Path, wrapped: bool) -> None:
    content = b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + b" " * 10**6
    path = tmp_path / ("n.npz" if wrapped else "n.npy")
    path.write_bytes(npz(content) if wrapped else content)
    with pytest.raises(NormalMeshError, match="its header claims 4294967295 bytes"):
        read_array(path)


@pytest.mark.parametrize("header", [b"-" * 9000 + b"1", b"{'a':" * 1500, b"(" * 9000])
def test_a_header_that_exhausts_the_parser(tmp_path: Path, header: bytes) -> None:
    (tmp_path / "n.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    with pytest.raises(NormalMeshError, match="cannot be read as NPY"):
        read_array(tmp_path / "n.npy")


def test_a_compressed_variable_is_inflated_no_further_than_its_shape(tmp_path: Path) -> None:
    inside = mat_array(b"normals", (2, 2, 3), mat_element(9, np.ones(12).tobytes()))
    packed = zlib.compressobj()
    content = packed.compress(inside)
    for _ in range(64):
        content += packed.compress(bytes(1 << 20))
    content += packed.flush()
    (tmp_path / "n.mat").write_bytes(mat_file(struct.pack("<II", 15, len(content)) + content))
    assert read_array(tmp_path / "n.mat").size == (2, 2)
    # The name of the variable has 64 MB.
    head = inside[:8] + mat_element(6, struct.pack("<II", 6, 0)) + mat_element(5, struct.pack("<3i", 2, 2, 3))
    content = zlib.compress(head + struct.pack("<II", 1, 1 << 26) + bytes(1 << 26))
    (tmp_path / "n.mat").write_bytes(mat_file(struct.pack("<II", 15, len(content)) + content))
    with pytest.raises(NormalMeshError, match="its end is missing"):
        read_array(tmp_path / "n.mat")


def test_a_mesh_without_the_values_that_it_claims(tmp_path: Path) -> None:
    tree = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "accessors": [{"componentType": 5126, "count": 10**9, "type": "VEC3"}],
        "bufferViews": [],
        "buffers": [{"byteLength": 4}],
    }
    text = json.dumps(tree).encode()
    text += b" " * (-len(text) % 4)
    head = struct.pack("<4sIII4s", b"glTF", 2, 32 + len(text), len(text), b"JSON")
    (tmp_path / "m.glb").write_bytes(head + text + struct.pack("<I4s", 4, b"BIN\0") + bytes(4))
    with pytest.raises(NormalMeshError, match="claims 1000000000 values that it does not hold"):
        TriangleModel.of(tmp_path / "m.glb")


def test_threads_do_not_change_the_limit_of_pillow(tmp_path: Path) -> None:
    PIL.Image.new("RGB", (40, 40)).save(tmp_path / "t.png")
    before = PIL.Image.MAX_IMAGE_PIXELS
    threads = [threading.Thread(target=lambda: [colour_image(tmp_path / "t.png") for _ in range(30)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert before == PIL.Image.MAX_IMAGE_PIXELS is not None
