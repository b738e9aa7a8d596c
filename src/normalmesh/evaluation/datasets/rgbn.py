"""RGBN: pictures with a colour and a normal at each pixel (Toler-Franklin et al. 2007), without ground truth."""

from __future__ import annotations

import re
from pathlib import Path

from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.datasets.case_assembly import assemble, read_map
from normalmesh.evaluation.datasets.dataset import Dataset, first_file

#: Pattern of the names of normal maps, or of their folder.
MARK = re.compile(r"[-_. ]*(normals?([-_ ]?map)?|nrm)s?[-_. ]*|[-_.]n$", re.IGNORECASE)

SUFFIXES = (".png", ".tif", ".tiff", ".jpg", ".jpeg", ".exr")


class Rgbn(Dataset):
    """RGBN. Normals are assumed to be RGB: x right, y up, z towards the viewer, black background; orthographic camera.

    File names and axes could not be checked against the original data. Every picture with "normal" in its name, or in
    the name of its folder, is a case; a warning is given if the data clearly have other axes. Convert other formats to
    PNG.
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
    """Return the name of the case, or None if the picture is not a normal map."""
    folder = "" if path.parent == root else path.parent.name
    if MARK.search(path.stem):
        return MARK.sub("", path.stem) or folder or None
    return path.stem if folder and MARK.fullmatch(folder) else None
