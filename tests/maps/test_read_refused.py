"""Files that read_normal_map refuses, and its error messages."""

from __future__ import annotations

import builtins
import io
import re
import struct
import zlib
from types import SimpleNamespace

import imagecodecs
import numpy as np
import PIL.Image
import pytest
import scipy.io
import tifffile

from normal_map_files import dome, encode, hand_made_png, layer, write_exr, write_png
from normalmesh import NormalMeshError, read_normal_map

OpenEXR = pytest.importorskip("OpenEXR")

pytestmark = pytest.mark.usefixtures("no_diagnosis")


class TestRefused:
    def test_no_file(self, tmp_path):
        with pytest.raises(NormalMeshError, match=r"none\.png: there is no such file"):
            read_normal_map(tmp_path / "none.png")

    def test_a_folder(self, tmp_path):
        with pytest.raises(NormalMeshError, match="is a folder, not a file"):
            read_normal_map(tmp_path)

    def test_a_file_that_may_not_be_read(self, tmp_path, monkeypatch):
        def refuse(*args, **options):
            raise PermissionError(13, "Permission denied")

        path = write_png(tmp_path / "n.png", encode(dome(), np.uint8))
        monkeypatch.setattr(io, "open", refuse)
        with pytest.raises(NormalMeshError, match=r"n\.png: cannot be opened: Permission denied"):
            read_normal_map(path)

    def test_an_empty_file(self, tmp_path):
        (tmp_path / "n.png").touch()
        with pytest.raises(NormalMeshError, match=r"n\.png: the file is empty"):
            read_normal_map(tmp_path / "n.png")

    @pytest.mark.parametrize("content", [b"x", b"solid cube\n"])
    def test_an_unknown_format(self, tmp_path, content):
        (tmp_path / "n.png").write_bytes(content)
        with pytest.raises(NormalMeshError, match="unknown format; expected PNG, JPEG, TIFF, TGA"):
            read_normal_map(tmp_path / "n.png")

    @pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", "-zlib.tif", ".exr", ".npy", ".npz", ".mat"])
    @pytest.mark.parametrize("share", [0.3, 0.6, 0.97])
    def test_truncated(self, tmp_path, suffix, share):
        normals = np.tile(dome(), (4, 4, 1))
        path = tmp_path / f"n{suffix}"
        if suffix == ".png":
            write_png(path, encode(normals, np.uint16))
        elif suffix == ".jpg":
            path.write_bytes(imagecodecs.jpeg8_encode(encode(normals, np.uint8), level=95))
        elif path.suffix == ".tif":
            compression = "zlib" if "zlib" in suffix else None
            tifffile.imwrite(path, encode(normals, np.uint16), photometric="rgb", compression=compression)
        elif suffix == ".exr":
            write_exr(path, layer(normals))
        elif suffix == ".npy":
            np.save(path, normals)
        elif suffix == ".npz":
            np.savez_compressed(path, normals=normals)
        else:
            scipy.io.savemat(path, {"normals": normals}, do_compression=True)
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(NormalMeshError, match=rf"n{re.escape(suffix)}: cannot be read as .* incomplete"):
            read_normal_map(path)

    @pytest.mark.parametrize(
        ("colour", "rows", "name"), [(0, b"\0\1\2", "grey"), (3, b"\0\0\0", "palette"), (4, b"\0\1\2\3\4", "grey")]
    )
    def test_png_without_three_channels(self, tmp_path, colour, rows, name):
        palette = struct.pack(">I", 3) + b"PLTE" + b"\x80\x80\xff"
        palette += struct.pack(">I", zlib.crc32(palette[4:]))
        (tmp_path / "n.png").write_bytes(hand_made_png(2, 1, 8, colour, rows, palette if colour == 3 else b""))
        with pytest.raises(
            NormalMeshError, match=f"is a {name} image; a normal map needs three channels: save it as RGB"
        ):
            read_normal_map(tmp_path / "n.png")

    def test_an_array_of_heights(self, tmp_path):
        np.save(tmp_path / "n.npy", np.zeros((5, 6)))
        with pytest.raises(NormalMeshError, match="not 5×6; from_heights makes a map of heights"):
            read_normal_map(tmp_path / "n.npy")

    def test_jpeg_without_three_channels(self, tmp_path):
        path = tmp_path / "n.jpg"
        path.write_bytes(imagecodecs.jpeg8_encode(np.full((9, 9), 99, np.uint8)))
        with pytest.raises(NormalMeshError, match=r"is a grey image.*, or give it to from_heights if it holds heights"):
            read_normal_map(path)
        PIL.Image.new("CMYK", (9, 9)).save(path)
        with pytest.raises(NormalMeshError, match="is a CMYK image"):
            read_normal_map(path)

    def test_tiff_without_three_channels(self, tmp_path):
        path, grey = tmp_path / "n.tif", np.ones((9, 9), np.uint8)
        tifffile.imwrite(path, grey)
        with pytest.raises(NormalMeshError, match="is a grey image"):
            read_normal_map(path)
        tifffile.imwrite(path, grey, photometric="palette", colormap=np.zeros((3, 256), np.uint16))
        with pytest.raises(NormalMeshError, match="is a palette image"):
            read_normal_map(path)
        tifffile.imwrite(path, np.ones((9, 9, 4), np.uint8), photometric="separated")
        with pytest.raises(NormalMeshError, match="is a CMYK image"):
            read_normal_map(path)
        tifffile.imwrite(path, np.ones((5, 9, 9), np.float32), photometric="minisblack")
        with pytest.raises(NormalMeshError, match="holds an array of 5×9×9 float32; expected one image"):
            read_normal_map(path)

    def test_exr_without_the_extra(self, tmp_path, monkeypatch):
        path = write_exr(tmp_path / "n.exr", layer(dome()))
        original = builtins.__import__

        def without_openexr(name, *args, **options):
            if name == "OpenEXR":
                raise ImportError(name)
            return original(name, *args, **options)

        monkeypatch.setattr(builtins, "__import__", without_openexr)
        with pytest.raises(NormalMeshError, match=r"reading EXR needs OpenEXR; pip install normalmesh\[exr\]"):
            read_normal_map(path)

    def test_exr_of_other_channels(self, tmp_path):
        path = tmp_path / "n.exr"
        with pytest.raises(NormalMeshError, match="no layer has the channels R, G, B or X, Y, Z"):
            read_normal_map(write_exr(path, {"Y": dome()[..., 0].astype(np.float32)}))
        with pytest.raises(NormalMeshError, match="channel R holds whole numbers"):
            read_normal_map(write_exr(path, layer(dome() + 5, dtype=np.uint32)))

    def test_cropped_exr(self, tmp_path):
        corners = (np.array([0, 0], np.int32), np.array([99, 99], np.int32))
        path = write_exr(tmp_path / "n.exr", layer(dome()), displayWindow=corners)
        with pytest.raises(NormalMeshError, match="data window is not its display window"):
            read_normal_map(path)

    def test_subsampled_exr(self, tmp_path, monkeypatch):
        channel = SimpleNamespace(name="R", xSampling=2, ySampling=2)
        names = [SimpleNamespace(name=name) for name in "RGB"]
        header = {"dataWindow": (0, 0), "displayWindow": (0, 0), "channels": names}
        part = SimpleNamespace(channels=dict.fromkeys("RGB", channel), header=header, name=lambda: "")
        monkeypatch.setattr("normalmesh.files.exr._read_parts", lambda path: [part])
        with pytest.raises(NormalMeshError, match="channel R is subsampled; save all channels in full resolution"):
            read_normal_map(write_exr(tmp_path / "n.exr", layer(dome())))

    def test_arrays_of_other_shapes(self, tmp_path):
        np.save(tmp_path / "n.npy", np.ones((3, 20, 20)))
        with pytest.raises(NormalMeshError, match=r"normals must have the shape \(rows, columns, 3\), not 3×20×20"):
            read_normal_map(tmp_path / "n.npy")

    @pytest.mark.parametrize("dtype", [bool, np.int64, np.uint32, complex])
    def test_arrays_of_other_types(self, tmp_path, dtype):
        np.save(tmp_path / "n.npy", np.ones((4, 4, 3), dtype))
        with pytest.raises(
            NormalMeshError, match=f"holds {np.dtype(dtype)}, whose range is not known; save normals as"
        ):
            read_normal_map(tmp_path / "n.npy")

    def test_nothing_is_unpickled(self, tmp_path):
        np.save(tmp_path / "n.npy", np.full((2, 2, 3), None), allow_pickle=True)
        with pytest.raises(NormalMeshError, match=r"n\.npy: cannot be read as NPY"):
            read_normal_map(tmp_path / "n.npy")
        np.savez(tmp_path / "n.npz", normals=np.full((2, 2, 3), None))
        with pytest.raises(NormalMeshError, match=r"n\.npz: cannot be read as NPZ"):
            read_normal_map(tmp_path / "n.npz")

    @pytest.mark.parametrize(
        "content",
        [
            b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(400) + b"\x89HDF\r\n\x1a\n",
            b"\x89HDF\r\n\x1a\n" + bytes(200),
        ],
    )
    def test_mat_of_version_7_3(self, tmp_path, content):
        (tmp_path / "n.mat").write_bytes(content)
        with pytest.raises(NormalMeshError, match=r"is a MAT file of version 7\.3 \(HDF5\).*save\(\.\.\., '-v7'\)"):
            read_normal_map(tmp_path / "n.mat")

    def test_eight_bits_in_sixteen(self, tmp_path):
        path = write_png(tmp_path / "n.png", encode(dome(), np.uint8).astype(np.uint16))
        with pytest.raises(NormalMeshError, match="values end at 255 of 65535: 8-bit values in a wider file"):
            read_normal_map(path)
