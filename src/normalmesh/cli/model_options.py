"""Triangle models by file or by name, as a command is given them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from normalmesh.errors import NormalMeshError

if TYPE_CHECKING:
    from normalmesh.evaluation.cases import Case
    from normalmesh.normals.camera import Camera

#: Models that need no file; see :mod:`normalmesh.evaluation.synthetic.models`.
NAMED_MODELS = ("knot", "stone", "vase")


def rendered(model: str, shape: tuple[int, int], camera: Camera, *, placed: bool = False, smooth: bool = True) -> Case:
    """What the camera sees of a model: fitted to the image unless it is placed in the camera's frame already."""
    import numpy as np

    from normalmesh.evaluation.rendering.rendering import render_normal_map
    from normalmesh.evaluation.synthetic import models

    if not Path(model).exists():
        if model not in NAMED_MODELS:
            raise NormalMeshError(
                f"{model}: there is no such file, nor a model of that name; there are {', '.join(NAMED_MODELS)}"
            )
        if placed:
            raise NormalMeshError(f"{model} has no place in a camera's frame; leave --placed away")
        return render_normal_map(getattr(models, model)(), shape, camera, smooth=smooth, name=model)
    return render_normal_map(model, shape, camera, smooth=smooth, pose=np.eye(4) if placed else None)
