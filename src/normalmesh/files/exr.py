"""Reading normals and depths from OpenEXR files: the channels R, G, B or X, Y, Z of a layer, and its alpha."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from normalmesh.array_types import Floating
from normalmesh.errors import NormalMeshError, path_text
from normalmesh.files.formats import reading, unusable
from normalmesh.files.size_limits import check_image_size

if TYPE_CHECKING:
    import OpenEXR

_one_at_a_time = Lock()


def read_exr(path: Path, layer: str | None) -> Floating:
    """Return the channels (H, W, 3) of the layer named, or the only one, with alpha as a fourth if there is one."""
    with reading(path, "EXR"):
        parts = _read_parts(path)
        number, names = _chosen_layer(path, parts, layer)
        _refuse_cropped(path, parts[number])
        return np.stack([_pixels(path, parts[number].channels[name]) for name in names], axis=-1)


def read_exr_size(path: Path) -> tuple[int, int]:
    """Return rows and columns of the layer that :func:`read_exr` reads, from the header."""
    with reading(path, "EXR"):
        parts = _opened(path, header_only=True)
        part = parts[_chosen_layer(path, parts, None)[0]]
        _refuse_cropped(path, part)
        return _size(part)


def _read_parts(path: Path) -> list[OpenEXR.Part]:
    expected, parts = _opened(path, header_only=True), _opened(path, separate_channels=True)
    # A part whose pixels are cut off is left out by the reader instead of being reported.
    if len(parts) != len(expected):
        raise ValueError("pixels are missing")
    return parts


def _opened(path: Path, **options: bool) -> list[OpenEXR.Part]:
    """Return all parts, after a check of their sizes."""
    try:
        import OpenEXR
    except ImportError as error:
        raise NormalMeshError(f"{path_text(path)}: reading EXR needs OpenEXR; pip install normalmesh[exr]") from error

    # What it prints about damaged files goes to standard error: standard output is for results. One thread at a time:
    # another one would restore the wrong descriptor. Names need not be text.
    with _one_at_a_time, redirect_stdout(sys.stderr):
        parts: list[OpenEXR.Part] = OpenEXR.File(os.fsencode(path), **options).parts
    for part in parts if "header_only" in options else ():
        check_image_size(path, *_size(part), 4 * len(part.header["channels"]))
    return parts


def _size(part: OpenEXR.Part) -> tuple[int, int]:
    """Return rows and columns."""
    (left, top), (right, bottom) = part.header["dataWindow"]
    return int(bottom) - int(top) + 1, int(right) - int(left) + 1


def _layers(parts: list[OpenEXR.Part]) -> dict[str, tuple[int, list[str]]]:
    """Return all layers with the channels R, G, B or X, Y, Z by name, which is the part's and the channels' prefix.

    A layer is the number of its part and the names of its channels; alpha is the fourth, if there is one.
    """
    layers = {}
    for index, part in enumerate(parts):
        part_name = part.name() if len(parts) > 1 else ""
        names = [channel.name for channel in part.header["channels"]]
        for prefix in sorted({name.rpartition(".")[0] for name in names}):
            own = {name.rpartition(".")[2].upper(): name for name in names if name.rpartition(".")[0] == prefix}
            alpha = own.get("A") or ("A" if "A" in names else None)
            complete = [axes for axes in ("RGB", "XYZ") if set(axes) <= set(own)]
            for axes in complete:
                label = "/".join(filter(None, [part_name, prefix])) or axes
                if len(complete) > 1 and label != axes:
                    label = f"{label}.{axes}"
                layers[label] = index, [own[axis] for axis in axes] + ([alpha] if alpha else [])
    return layers


def _chosen_layer(path: Path, parts: list[OpenEXR.Part], name: str | None) -> tuple[int, list[str]]:
    layers = _layers(parts)
    listed = ", ".join(layers)
    if not layers:
        held = ", ".join(channel.name for part in parts for channel in part.header["channels"]) or "none"
        raise unusable(path, f"no layer has the channels R, G, B or X, Y, Z; the channels are {held}")
    if name is not None and name not in layers:
        raise unusable(path, f"there is no layer {name!r} with three channels; the file holds: {listed}")
    if name is None and len(layers) > 1:
        raise unusable(path, f"several layers could be the normals: {listed}; name one as variable=…")
    return next(iter(layers.values())) if name is None else layers[name]


def _refuse_cropped(path: Path, part: OpenEXR.Part) -> None:
    """Refuse a data window inside the display window, which would shift the pixels against mask and camera."""
    header = part.header
    if not np.array_equal(header["dataWindow"], header["displayWindow"]):
        raise unusable(path, "its data window is not its display window; save the image uncropped")


def _pixels(path: Path, channel: OpenEXR.Channel) -> Floating:
    """Return the pixels (H, W) of one channel, float16 or float32."""
    if channel.xSampling != 1 or channel.ySampling != 1:
        raise unusable(path, f"channel {channel.name} is subsampled; save all channels in full resolution")
    pixels: Floating = channel.pixels
    if pixels.dtype.kind != "f":
        held = "several samples a pixel" if pixels.dtype.kind == "O" else "whole numbers"
        raise unusable(path, f"channel {channel.name} holds {held}; save one half or float a pixel")
    return pixels


def read_exr_channel(path: Path, name: str | None) -> Floating:
    """Return the pixels (H, W) of the channel named, of the one called Y, Z, V or depth, or of the only one.

    Channels of a file of several parts are called ``part/channel``.
    """
    with reading(path, "EXR"):
        parts = _read_parts(path)
        channels = {
            f"{part.name()}/{own}" if len(parts) > 1 else own: (part, channel)
            for part in parts
            for own, channel in part.channels.items()
        }
        last = {label: label.rpartition("/")[2].rpartition(".")[2].lower() for label in channels}
        # With the chroma RY and BY, Y is the luminance of a colour image.
        telling = ("z", "v", "depth") if "ry" in last.values() else ("y", "z", "v", "depth")
        chosen = [label for label in channels if last[label] in telling]
        if name is not None:
            chosen = [label for label in channels if name in (label, label.rpartition("/")[2])]
        elif len(chosen) != 1:
            chosen = list(channels)
        if len(chosen) != 1:
            raise unusable(path, f"the channels are {', '.join(channels)}; name the one of the depths as variable=…")
        part, channel = channels[chosen[0]]
        _refuse_cropped(path, part)
        return _pixels(path, channel)
