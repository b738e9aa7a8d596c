"""Plain folders: one folder per case."""

from __future__ import annotations

import json
from pathlib import Path

from normalmesh.errors import NormalMeshError, path_text
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.datasets.case_assembly import assemble, read_distances, read_map
from normalmesh.evaluation.datasets.dataset import Dataset, first_file
from normalmesh.normals.perspective import Perspective

NORMALS = [f"normals.{suffix}" for suffix in ("png", "exr", "tif", "tiff", "npy", "npz", "mat", "jpg")]
DEPTHS = [f"depth.{suffix}" for suffix in ("npz", "npy", "exr", "tif", "tiff", "mat")]


class PlainFolders(Dataset):
    """Plain folders. Normals are x right, y up, z towards the viewer. Depth increases away from the camera.

    With ``K.txt``, the camera is perspective, pixel centres are at integers, and depth is along the optical axis.
    Without it, the camera is orthographic, and depth is in pixels up to a constant.
    """

    name = "folders"
    title = "plain folders, one per case"
    address = "your own data"
    layout = """
        cases/
            vase/                    any name
                normals.png          or .exr, .tif, .npy, .npz, .mat
                mask.png             optional; default: the alpha channel, or all pixels that are not black
                K.txt                optional: 3×3 intrinsics, pixel centres at integers; default: orthographic
                depth.npz            optional: depth (rows, columns); or .npy, .exr, .tif, .mat
                meta.json            optional: {"units": "mm"}
        """

    def _places_in(self, root: Path) -> dict[str, Path]:
        folders = [root] if first_file(root, NORMALS) else sorted(path for path in root.iterdir() if path.is_dir())
        return {folder.resolve().name: folder for folder in folders if first_file(folder, NORMALS)}

    def _cameras(self, place: Path) -> tuple[str, ...]:
        return self.cameras if (place / "K.txt").is_file() else ("orthographic",)

    def _load(self, name: str, place: Path, camera: str) -> Case:
        K = place / "K.txt"
        intrinsics = Perspective.from_file(K) if K.is_file() else None
        mask = place / "mask.png"
        normal_map = read_map(self._file(place, *NORMALS), mask if mask.is_file() else None, camera, intrinsics)
        depth = first_file(place, DEPTHS)
        distances = None if depth is None else read_distances(depth, normal_map)
        units = _units(place / "meta.json") or ("px" if intrinsics is None else "units")
        return assemble(name, normal_map, distances, intrinsics, units=units)


def _units(path: Path) -> str | None:
    """Return the unit of the depth if the file states it."""
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise NormalMeshError(f"{path_text(path)}: is not valid JSON: {error}") from error
    return str(content["units"]) if isinstance(content, dict) and "units" in content else None
