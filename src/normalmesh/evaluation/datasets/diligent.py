"""DiLiGenT: ten objects in one view, with scanned normals (Shi et al. 2016) and depth maps published by others."""

from __future__ import annotations

from pathlib import Path

from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.datasets.case_assembly import assemble, read_distances, read_map
from normalmesh.evaluation.datasets.dataset import Dataset, first_file
from normalmesh.normals.perspective import Perspective

#: Intrinsics of all objects, 612 × 512 pixels, centre of the first pixel at (0, 0), as public code uses them. The data
#: set itself does not contain them.
INTRINSICS = ((3772.077471, 0.0, 305.875), (0.0, 3759.005431, 255.875), (0.0, 0.0, 1.0))


class Diligent(Dataset):
    """DiLiGenT. Normals are x right, y up, z towards the viewer. Depth, if there is any, is z-depth in mm.

    The data set itself has no depth. The authors of bilateral normal integration (Cao et al. 2022) published depth maps
    of nine objects as ``diligent_depth_GT``; that folder may be next to ``pmsData`` or in it.
    """

    name = "diligent"
    title = "DiLiGenT"
    address = "https://sites.google.com/site/photometricstereodata/single"
    layout = """
        DiLiGenT/pmsData/
            bearPNG/                 and ballPNG, buddhaPNG, catPNG, ...
                Normal_gt.mat        Normal_gt (rows, columns, 3)
                mask.png
                K.txt                optional: 3×3 intrinsics, pixel centres at integers
            diligent_depth_GT/       optional, here or one level up
                bear_gt.mat          depth_gt (rows, columns), mm
        """
    inner = ("pmsData", "DiLiGenT/pmsData", "DiLiGenT")

    def _places_in(self, root: Path) -> dict[str, Path]:
        return {path.parent.name.removesuffix("PNG"): path.parent for path in sorted(root.glob("*PNG/Normal_gt.mat"))}

    def _load(self, name: str, place: Path, camera: str) -> Case:
        K = place / "K.txt"
        intrinsics = Perspective.from_file(K) if K.is_file() else Perspective.from_matrix(INTRINSICS)
        normal_map = read_map(
            self._file(place, "Normal_gt.mat"), self._file(place, "mask.png"), camera, intrinsics, "Normal_gt"
        )
        depth = first_file(
            place.parent,
            [
                f"{place.name}/depth_gt.mat",
                *(f"{folder}/{name}_gt.mat" for folder in (place.name, "diligent_depth_GT", "../diligent_depth_GT")),
            ],
        )
        distances = None if depth is None else read_distances(depth, normal_map)
        return assemble(name, normal_map, distances, intrinsics, units="mm")
