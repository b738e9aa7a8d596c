"""Triangle models that a command accepts as a file or by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from normalmesh.errors import NormalMeshError, path_text

if TYPE_CHECKING:
    from normalmesh.evaluation.cases import Case
    from normalmesh.normals.camera import Camera

#: Models that can be given by name; see :mod:`normalmesh.evaluation.synthetic.models`.
NAMED_MODELS = ("knot", "stone", "vase")


def rendered(model: str, shape: tuple[int, int], camera: Camera, *, placed: bool = False, smooth: bool = True) -> Case:
    """Return the rendering of a model, which is fitted to the image unless it is in the camera frame already."""
    import numpy as np

    from normalmesh.evaluation.rendering.rendering import render_normal_map
    from normalmesh.evaluation.synthetic import models

    if not Path(model).exists():
        if model not in NAMED_MODELS:
            raise NormalMeshError(
                f"{path_text(model)}: there is no such file, nor a model of that name; "
                f"known models: {', '.join(NAMED_MODELS)}"
            )
        if placed:
            raise NormalMeshError(f"{path_text(model)} has no position in a camera frame; omit --placed")
        return render_normal_map(getattr(models, model)(), shape, camera, smooth=smooth, name=model)
    return render_normal_map(model, shape, camera, smooth=smooth, pose=np.eye(4) if placed else None)
