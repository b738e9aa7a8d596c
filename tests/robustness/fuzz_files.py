"""Fuzz the readers with damaged files: bytes of valid files are flipped, cut, repeated, spliced or set to extremes."""

from __future__ import annotations

import io
import json
import struct
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import imagecodecs
import numpy as np
import PIL.Image
import scipy.io
import tifffile
import trimesh
from hypothesis import strategies as st

import rti_files
from normal_map_files import corner_mask, dome, encode, layer, with_alpha, write_exr
from normalmesh import (
    NormalMap,
    NormalMeshError,
    NormalMeshWarning,
    Orthographic,
    Perspective,
    Surface,
    from_heights,
    from_network,
    read_lights,
    read_normal_map,
    read_rti,
)
from normalmesh.evaluation.rendering.triangle_model import TriangleModel
from normalmesh.files.height_png import depth_files, range_of_camera, read_height_range
from normalmesh.files.masks import read_mask
from normalmesh.maps.cameras import read_camera_matrix
from normalmesh.maps.inspection import inspect_file
from normalmesh.maps.point_files import read_control_points
from normalmesh.output.heights import read_depth_map
from normalmesh.output.mesh_writing import colour_image
from normalmesh.photometric.photographs import photographs


def opened_as_read(path: Path) -> None:
    """Open a map on disk, which must have the pixels of the map that is read whole."""
    opened = NormalMap.open(path).read()
    whole = read_normal_map(path)
    assert opened.normals.tobytes() == whole.normals.tobytes()


READERS: dict[str, Callable[[Path], object]] = {
    "normal map": read_normal_map,
    "map on disk": opened_as_read,
    "inspection": inspect_file,
    "mask": read_mask,
    "depth map": read_depth_map,
    "photographs": lambda path: photographs([path] * 3),
    "texture": colour_image,
    "camera": read_camera_matrix,
    "prior": read_control_points,
    "lights": read_lights,
    "model": TriangleModel.of,
    "surface": Surface.from_mesh,
    "relightable image": read_rti,
    "height range": read_height_range,
    "heights": from_heights,
    "network": from_network,
}
#: Readers that name the argument, not the file, if what the file holds does not suit them.
NAMED_OTHERWISE = ("surface", "heights", "network")
#: The reader for the files of a kind, by the first word of the kind; default: normal map.
MEANT_FOR = {
    "camera": "camera",
    "prior": "prior",
    "lights": "lights",
    "model": "model",
    "grey": "mask",
    **dict.fromkeys(("palette", "cmyk", "gif", "turned"), "texture"),
    **dict.fromkeys(("ptm", "rti"), "relightable image"),
    "heights": "height range",
    "network": "network",
}

#: Numbers that replace those of headers.
EXTREMES = (0, 1, 2, 3, 5, 127, 128, 255, 256, 32767, 32768, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)
#: Words that are inserted into texts.
WORDS = (
    b"nan",
    b"-inf",
    b"1e999",
    b"-1",
    b"0",
    b"9" * 30,
    b"9" * 5000,
    b"#",
    b",",
    b"\0",
    b"\xff\xfe",
    b"[" * 2000,
    b"{",
    b'"',
    b"\n",
)


@dataclass(frozen=True)
class Damaged:
    """A kind of file, changes to it, and the reader to test it with."""

    kind: str
    changes: tuple[tuple, ...]
    reader: str
    suffix: str = ""

    def content(self) -> bytes:
        """Return the bytes of the damaged file."""
        original, finish = originals()[self.kind]
        for name, *arguments in self.changes:
            original = CHANGES[name](original, *arguments)
        return finish(original)


def _flipped(content: bytes, at: int, bits: int) -> bytes:
    return _replaced(content, at, bytes([content[at % len(content)] ^ bits])) if content else content


def _replaced(content: bytes, at: int, new: bytes) -> bytes:
    at %= max(len(content), 1)
    return content[:at] + new + content[at + len(new) :]


def _cut(content: bytes, at: int) -> bytes:
    return content[: at % max(len(content), 1)]


def _dropped(content: bytes, at: int, count: int) -> bytes:
    at %= max(len(content), 1)
    return content[:at] + content[at + count :]


def _repeated(content: bytes, at: int, count: int) -> bytes:
    at %= max(len(content), 1)
    return content[: at + count] + content[at:]


def _spliced(content: bytes, at: int, other: str, start: int, count: int) -> bytes:
    source = originals()[other][0]
    start %= len(source)
    return _replaced(content, at, source[start : start + count])


def _set(content: bytes, at: int, size: int, order: str, value: int) -> bytes:
    return _replaced(content, at, (value % 256**size).to_bytes(size, order))  # type: ignore[arg-type]


def _inserted(content: bytes, at: int, word: bytes) -> bytes:
    at %= max(len(content), 1)
    return content[:at] + word + content[at:]


CHANGES: dict[str, Callable[..., bytes]] = {
    "flip": _flipped,
    "cut": _cut,
    "drop": _dropped,
    "repeat": _repeated,
    "splice": _spliced,
    "set": _set,
    "insert": _inserted,
}


@cache
def originals() -> dict[str, tuple[bytes, Callable[[bytes], bytes]]]:
    """Return valid files by kind, each with a function that adds checksums or compression after the damage."""
    plain = {**_images(), **_pillow_images(), **_relightable_images(), **_arrays(), **_texts(), **_models()}
    made: dict[str, tuple[bytes, Callable[[bytes], bytes]]] = {
        kind: (content, bytes) for kind, content in plain.items()
    }
    for kind in [kind for kind in plain if kind.endswith("png")]:
        made[f"{kind}, checksums repaired"] = (plain[kind], with_checksums)
    for kind in ("npy", "npy, fortran"):
        made[f"{kind} in npz"] = (plain[kind], _zipped)
    return made


def _images() -> dict[str, bytes]:
    """Return normal maps and grey images in every image format."""
    normals, mask = dome(), corner_mask()
    narrow, wide = encode(normals, np.uint8), encode(normals, np.uint16)
    grey = narrow[..., 2]
    images = {
        "png": imagecodecs.png_encode(narrow),
        "16-bit png": imagecodecs.png_encode(with_alpha(wide, 65535 * mask)),
        "palette png": _pillow(PIL.Image.fromarray(narrow).convert("P"), "PNG"),
        "grey png": imagecodecs.png_encode(np.ascontiguousarray(grey)),
        "jpeg": imagecodecs.jpeg8_encode(narrow, level=95),
        "progressive jpeg": _pillow(PIL.Image.fromarray(narrow), "JPEG", progressive=True, quality=95),
        "grey jpeg": imagecodecs.jpeg8_encode(np.ascontiguousarray(grey)),
        "cmyk jpeg": _pillow(PIL.Image.fromarray(narrow).convert("CMYK"), "JPEG"),
        "12-bit jpeg": imagecodecs.jpeg8_encode(wide >> 4, level=95, bitspersample=12),
        "lossless jpeg": imagecodecs.jpeg8_encode(narrow, lossless=True),
        "jpeg with exif": _pillow(PIL.Image.fromarray(narrow), "JPEG", exif=_exif()),
        "exif png": _pillow(PIL.Image.fromarray(narrow), "PNG", exif=_exif()),
        "grey palette png": _pillow(PIL.Image.fromarray(grey).convert("P"), "PNG"),
        "gif": _pillow(PIL.Image.fromarray(narrow), "GIF"),
        "hdr": b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 2 +X 2\n" + narrow.tobytes()[:16],
        "exr": _exr(layer(normals)),
        "half exr": _exr({**layer(normals, "n.", "XYZ", np.float16), "A": mask.astype(np.float16)}),
        "grey exr": _exr({"Y": normals[..., 2].astype(np.float32)}),
        "exr of parts": _exr_of_parts(layer(normals), {"Z": normals[..., 2].astype(np.float32)}),
    }
    tiffs = {
        "tiff": {"data": wide},
        "float tiff": {"data": normals.astype(np.float32)},
        "tiled tiff": {"data": wide, "tile": (16, 16), "compression": "zlib"},
        "lzw tiff": {"data": narrow, "compression": "lzw", "predictor": True},
        "planar bigtiff": {"data": np.moveaxis(wide, 2, 0).copy(), "bigtiff": True, "planarconfig": "separate"},
        "jpeg tiff": {"data": narrow, "compression": "jpeg"},
        "tiff with alpha": {"data": with_alpha(wide, 65535 * mask), "extrasamples": ["assocalpha"]},
        "turned tiff": {"data": narrow, "extratags": [(274, 3, 1, 6, True)]},
        "tiff with gaps": {"data": normals.astype(np.float32), "extratags": [(42113, 2, 6, "-9999", True)]},
        "float tiff, predicted": {"data": normals, "compression": "zlib", "predictor": 3, "byteorder": ">"},
    }
    for kind, options in tiffs.items():
        images[kind] = _tiff(**options, photometric="rgb")
    images["grey tiff"] = _tiff(grey, photometric="minisblack", byteorder=">")
    images["cmyk tiff"] = _tiff(with_alpha(narrow, grey), photometric="separated")
    images["palette tiff"] = _tiff(
        grey, photometric="palette", colormap=np.arange(768, dtype=np.uint16).reshape(3, 256)
    )
    images["tiff of pages"] = _tiff_of_pages(narrow)
    return images | _height_images()


def _pillow_images() -> dict[str, bytes]:
    """Return normal maps in the formats that Pillow reads."""
    narrow, mask = encode(dome(), np.uint8), corner_mask()
    image = PIL.Image.fromarray(narrow)
    transparent = PIL.Image.fromarray(with_alpha(narrow, np.where(mask, 255, 0).astype(np.uint8)))
    footer = bytes(8) + b"TRUEVISION-XFILE.\0"
    return {
        "tga": _pillow(image, "TGA") + footer,
        "tga with alpha": _pillow(transparent, "TGA", compression="tga_rle") + footer,
        "palette tga": _pillow(image.convert("P"), "TGA") + footer,
        "bmp": _pillow(image, "BMP"),
        "palette bmp": _pillow(image.convert("P"), "BMP"),
        "webp": _pillow(image, "WEBP", lossless=True),
        "webp with alpha": _pillow(transparent, "WEBP", quality=80),
        "animated webp": _pillow(image, "WEBP", save_all=True, append_images=[transparent]),
    }


def _relightable_images() -> dict[str, bytes]:
    """Return PTM and HSH files of a dome."""
    lights = rti_files.dome(12)
    photographs = rti_files.photographed(dome(), lights)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "image"
        made = {}
        for kind in ("LRGB", "RGB", "JPEG_LRGB", "JPEG_RGB"):
            rti_files.write_ptm(path, photographs, lights, kind)
            made[f"ptm {kind}"] = path.read_bytes()
        for terms in (4, 9):
            rti_files.write_hsh(path, photographs, lights, terms)
            made[f"rti {terms}"] = path.read_bytes()
        return made


def _height_images() -> dict[str, bytes]:
    """Return heights as PNG files with their range."""
    depth, shape = 5 + dome()[..., 2], dome().shape[:2]
    made = {}
    for name, camera in (
        ("heights png", Orthographic(0.1)),
        ("heights perspective png", Perspective.centred(20, shape)),
    ):
        files = depth_files(Path("damaged file.png"), depth, range_of_camera(camera, "mm"))
        made[name] = bytes(files[Path("damaged file.png")])
    return made


def _exif() -> PIL.Image.Exif:
    exif = PIL.Image.Exif()
    exif[0x0112] = 1
    return exif


def _tiff_of_pages(values: np.ndarray) -> bytes:
    """Return a TIFF with a preview, then the image as its nested page, and a mask."""
    with io.BytesIO() as file:
        with tifffile.TiffWriter(file) as writer:
            writer.write(values[::2, ::2], photometric="rgb", subfiletype=1, subifds=1, metadata=None)
            writer.write(values, photometric="rgb", metadata=None)
            writer.write(values[..., 2], photometric="minisblack", metadata=None)
        return file.getvalue()


def _arrays() -> dict[str, bytes]:
    normals, mask = dome(), corner_mask()
    matlab = {"normals": normals, "mask": mask.astype(np.uint8)}
    return {
        "npy": _written(np.save, normals.astype(np.float32)),
        "npy, fortran": _written(np.save, np.asfortranarray(encode(normals, np.int8))),
        "grey npy": _written(np.save, normals[..., 2]),
        "npz": _written(np.savez, normals=normals, mask=mask),
        "npz with camera": _written(np.savez, normals=normals, camera_matrix=np.diag([20.0, 20.0, 1.0])),
        "npz with pixel size": _written(np.savez, normals=normals, mask=mask, pixel_size=np.array(0.5)),
        "npz of slopes": _written(np.savez, p=-normals[..., 0], q=normals[..., 1], mask=mask),
        "mat of slopes": _written(scipy.io.savemat, {"p": -normals[..., 0], "q": normals[..., 1]}),
        "network npz": _written(
            np.savez,
            normal=normals * [1, -1, -1],
            mask=mask,
            intrinsics=np.diag([1.0, 1, 1]),
            depth=2 + normals[..., 0],
        ),
        "packed npz": _written(np.savez_compressed, normals=normals, depth=normals[..., 0]),
        "mat": _written(scipy.io.savemat, matlab),
        "packed mat": _written(scipy.io.savemat, matlab, do_compression=True),
        "mat of other types": _written(
            scipy.io.savemat, {"s": matlab, "n": normals + 1j, "t": "x", "u": np.array([1, "x"], object)}
        ),
        "mat 7.3": b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(384) + b"\x89HDF\r\n\x1a\n" + bytes(64),
    }


def _texts() -> dict[str, bytes]:
    matrix = [[120.5, 0, 8.5], [0, 120.5, 6], [0, 0, 1]]
    rows = ", ".join(f"{value:g}" for row in matrix for value in row)
    return {
        "camera text": b"# K\n120.5 0 8.5\n0 120.5 6\n0 0 1\n",
        "camera json": json.dumps({"name": "lens", "camera_matrix": matrix}).encode(),
        "camera parts json": json.dumps({"fx": 120.5, "fy": 121, "cx": 8, "cy": 6, "skew": 0.1}).encode(),
        "camera yaml": (
            f"%YAML:1.0\n---\ncamera_matrix: !!opencv-matrix\n   rows: 3\n   cols: 3\n   dt: d\n   data: [ {rows} ]\n"
        ).encode(),
        "camera npy": _written(np.save, np.array(matrix)),
        "prior csv": b"u,v,depth,weight\n3.5,4.5,0.25,10\n8,9,-1e-3,1  # seen\n\n11;2;4;5\n",
        "lights lp": b"3\r\nphotos/a 1.jpg 0.1 0.2 0.9\r\nb.jpg -0.3 0.1 0.8\r\nc.jpg 0 0 1\r\n",
        "lights text": "# lights\n0.1 0.2 0.9\n-0.3, 0.1, 0.8\n0;0;1\n".encode("utf-8-sig"),
    }


def _models() -> dict[str, bytes]:
    mesh = trimesh.Trimesh([[0, 0, 0], [4, 0, 1], [0, 4, 1], [4, 4, 0]], [[0, 1, 2], [1, 3, 2]], process=False)
    formats = {"ply": {}, "text ply": {"encoding": "ascii"}, "obj": {}, "stl": {}, "text stl": {}, "glb": {}}
    exported = {}
    for name, options in formats.items():
        kind = "stl_ascii" if name == "text stl" else name.split()[-1]
        content = mesh.export(file_type=kind, **options)
        exported[f"model {name}"] = content.encode() if isinstance(content, str) else bytes(content)
    return exported


def _written(write: Callable[..., object], *values: object, **options: object) -> bytes:
    with io.BytesIO() as file:
        write(file, *values, **options)
        return file.getvalue()


def _pillow(image: PIL.Image.Image, name: str, **options: object) -> bytes:
    return _written(lambda file: image.save(file, name, **options))


def _tiff(data: np.ndarray, **options: object) -> bytes:
    return _written(tifffile.imwrite, data, **options)


def _exr(channels: dict[str, np.ndarray]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return write_exr(Path(folder) / "image.exr", channels).read_bytes()


def _exr_of_parts(*parts: dict[str, np.ndarray]) -> bytes:
    import OpenEXR

    settings = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    made = [
        OpenEXR.Part(dict(settings), {name: np.ascontiguousarray(values) for name, values in part.items()}, str(index))
        for index, part in enumerate(parts)
    ]
    with tempfile.TemporaryDirectory() as folder:
        OpenEXR.File(made).write(str(Path(folder) / "image.exr"))
        return (Path(folder) / "image.exr").read_bytes()


def _zipped(content: bytes) -> bytes:
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("normals.npy", content)
        return file.getvalue()


def with_checksums(content: bytes) -> bytes:
    """Return a PNG whose chunks have the right checksums, up to the first chunk whose length is invalid."""
    fixed, position = bytearray(content), 8
    while position + 12 <= len(fixed):
        end = position + 8 + struct.unpack_from(">I", fixed, position)[0]
        if end + 4 > len(fixed):
            break
        struct.pack_into(">I", fixed, end, zlib.crc32(fixed[position + 4 : end]))
        position = end + 4
    return bytes(fixed)


def _changes() -> st.SearchStrategy[tuple[tuple, ...]]:
    at = st.integers(0, 63) | st.integers(0, 1023) | st.integers(-256, -1)
    count = st.integers(1, 64)
    change = st.one_of(
        st.tuples(st.just("flip"), at, st.integers(1, 255)),
        st.tuples(st.just("set"), at, st.sampled_from((1, 2, 4, 8)), st.sampled_from(("little", "big")), _extremes()),
        st.tuples(st.just("cut"), at),
        st.tuples(st.just("drop"), at, count),
        st.tuples(st.just("repeat"), at, count),
        st.tuples(st.just("splice"), at, st.sampled_from(sorted(originals())), st.integers(0, 1023), count),
        st.tuples(st.just("insert"), at, st.sampled_from(WORDS)),
    )
    return st.lists(change, max_size=5).map(tuple)


def _extremes() -> st.SearchStrategy[int]:
    return st.sampled_from(EXTREMES) | st.integers(0, 255)


@cache
def damaged_files() -> st.SearchStrategy[Damaged]:
    def with_reader(kind: str) -> st.SearchStrategy[Damaged]:
        meant = MEANT_FOR.get(kind.split()[0], "normal map")
        reader = st.just(meant) | st.sampled_from(sorted(READERS))
        # Meshes are read by their suffixes.
        suffix = st.just(f".{kind.split()[-1]}" if kind.startswith("model") else "")
        return st.builds(Damaged, st.just(kind), _changes(), reader, suffix)

    return st.sampled_from(sorted(originals())).flatmap(with_reader)


def read_damaged(given: Damaged) -> str:
    """Read a damaged file: it must be read, or be refused with one line that names it, and no other file be written."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalMeshWarning)
        warnings.simplefilter("error", RuntimeWarning)
        path = Path(folder) / f"damaged file{given.suffix}"
        path.write_bytes(given.content())
        try:
            READERS[given.reader](path)
        except NormalMeshError as error:
            message = str(error)
        else:
            return "read"
        finally:
            assert list(Path(folder).iterdir()) == [path]
    assert given.reader in NAMED_OTHERWISE or str(path) in message, message
    assert "\n" not in message, message
    return "refused"
