"""LUCES: fourteen objects close to the camera, with scanned normals and depth (Mecca et al. 2021)."""

from __future__ import annotations

from pathlib import Path

from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.datasets.case_assembly import assemble, read_distances, read_map
from normalmesh.evaluation.datasets.dataset import Dataset
from normalmesh.files.formats import unusable
from normalmesh.normals.perspective import Perspective


class Luces(Dataset):
    """LUCES. Normals are 16-bit RGB: x right, y up, z towards the viewer. Depth is z-depth in mm.

    The second line of ``led_params.txt`` has the number of images, the two sides of the image, the focal length and the
    principal point in pixels, and the mean distance, followed by lines of lights. The principal point is assumed to
    refer to pixel coordinates with the centre of the first pixel at (0, 0).
    """

    name = "luces"
    title = "LUCES"
    address = "http://www.robertomecca.com/luces.html"
    layout = """
        LUCES/data/
            Bell/                    and Ball, Bowl, Buddha, Bunny, Cup, ...
                led_params.txt       line 2: N_img nrows ncols f x0 y0 mean_distance
                normals.png          16-bit RGB
                mask.png
                zgt.npz              zgt (rows, columns), mm
        """
    inner = ("data", "LUCES/data", "Luces/data", "LUCES")

    def _places_in(self, root: Path) -> dict[str, Path]:
        return {path.parent.name: path.parent for path in sorted(root.glob("*/led_params.txt"))}

    def _load(self, name: str, place: Path, camera: str) -> Case:
        setup = self._file(place, "led_params.txt")
        intrinsics, size = _read_setup(setup)
        normal_map = read_map(self._file(place, "normals.png"), self._file(place, "mask.png"), camera, intrinsics)
        # The header of the file and the code that writes it disagree on the order of the two sides.
        if sorted(size) != sorted(normal_map.shape):
            raise unusable(setup, f"is for {shape_text(size)} pixels but normals are {shape_text(normal_map.shape)}")
        distances = read_distances(self._file(place, "zgt.npz"), normal_map, "zgt")
        return assemble(name, normal_map, distances, intrinsics, units="mm")


def _read_setup(path: Path) -> tuple[Perspective, tuple[int, int]]:
    """Read the camera, and the two sides of the image in pixels."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        _, side, other, focal, x, y = map(float, lines[1].split()[:6])
        K = [[focal, 0.0, x], [0.0, focal, y], [0.0, 0.0, 1.0]]
        return Perspective.from_matrix(K, pixel_centre="integer"), (round(side), round(other))
    except NormalMeshError as error:
        raise unusable(path, str(error)) from error
    except (IndexError, ValueError, OverflowError) as error:
        raise unusable(path, "line 2 must read: N_img nrows ncols f x0 y0 mean_distance, all numbers") from error
