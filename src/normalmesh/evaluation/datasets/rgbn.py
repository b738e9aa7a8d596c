"""RGBN: pictures with a colour and a normal at each pixel (Toler-Franklin et al. 2007), no ground truth."""

from __future__ import annotations

import re
from pathlib import Path

from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.datasets.assembly import assemble, read_map
from normalmesh.evaluation.datasets.dataset import Dataset, first_file

#: What marks a picture of normals, in its own name or, for ``normals/``, in that of its folder.
MARK = re.compile(r"[-_. ]*(normals?([-_ ]?map)?|nrm)s?[-_. ]*|[-_.]n$", re.IGNORECASE)

SUFFIXES = (".png", ".tif", ".tiff", ".jpg", ".jpeg", ".exr")


class Rgbn(Dataset):
    """Normals are taken as RGB with x right, y up, z towards the viewer, background black; the camera as orthographic.

    The files' names and axes could not be checked against the originals. Every picture whose name, or whose folder's
    name, says "normal" is a case; data that plainly have other axes are warned about. Save other formats as PNG.
    """

    name = "rgbn"
    title = "RGBN"
    address = "https://gfx.cs.princeton.edu/gfx/proj/rgbn/"
    layout = """
        RGBN/
            pinecone-normals.png     or pinecone/normals.png, normals/pinecone.png, pinecone_n.png; also TIFF, JPEG, EXR
            pinecone-mask.png        optional; the colour pictures are not read
        """
    cameras = ("orthographic",)

    def _places_in(self, root: Path) -> dict[str, Path]:
        pictures = [path for pattern in ("*", "*/*") for path in root.glob(pattern) if path.suffix.lower() in SUFFIXES]
        places: dict[str, Path] = {}
        for path in sorted(pictures):
            if (name := _name(path, root)) is not None:
                places.setdefault(name, path)
        return dict(sorted(places.items()))

    def _load(self, name: str, place: Path, camera: str) -> Case:
        mask = first_file(place.parent, [f"{name}{join}mask.png" for join in "-_."] + ["mask.png"])
        return assemble(name, read_map(place, mask, camera, None), None)


def _name(path: Path, root: Path) -> str | None:
    """Name of the case, or None for a picture of something else."""
    folder = "" if path.parent == root else path.parent.name
    if MARK.search(path.stem):
        return MARK.sub("", path.stem) or folder or None
    return path.stem if folder and MARK.fullmatch(folder) else None
