"""The cases of a benchmark: the project's own cases, or a data set on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import lru_cache, partial
from pathlib import Path

from trimesh import Trimesh

from normalmesh.errors import NormalMeshError
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.datasets import open_dataset
from normalmesh.evaluation.rendering.rendering import render_normal_map
from normalmesh.evaluation.synthetic.analytic import cone, medallion, ridges, waves
from normalmesh.evaluation.synthetic.models import knot, stone, vase
from normalmesh.evaluation.synthetic.terrain import terrain

CAMERAS = ("orthographic", "perspective")


@dataclass(frozen=True)
class Source:
    """A case that is loaded, or rendered, on first use."""

    name: str
    group: str  # cases of the same group are averaged in tables
    camera: str  # "orthographic" or "perspective"
    make: Callable[[], Case]

    def load(self) -> Case:
        """Return the case. Only the last loaded case is cached."""
        return _load(self)


@lru_cache(maxsize=1)
def _load(source: Source) -> Case:
    return source.make()


def own_sources(size: int, cameras: Sequence[str] = CAMERAS) -> list[Source]:
    """Return the project's own cases: four formulas, a terrain, and three rendered models with self-occlusion."""
    makers: dict[str, Callable[..., Case]]
    makers = {each.__name__: each for each in (medallion, ridges, cone, waves, terrain)}
    makers.update({each.__name__: partial(_rendered, each) for each in (stone, vase, knot)})
    return [
        Source(name, name, camera, partial(make, size, camera)) for camera in cameras for name, make in makers.items()
    ]


def dataset_sources(path: Path, cameras: Sequence[str] = CAMERAS) -> list[Source]:
    """Return the cases of a data set on disk, each with the cameras available for it."""
    dataset = open_dataset(path)
    return [
        Source(name, dataset.group(name), camera, partial(dataset.load, name, camera))
        for camera in cameras
        if camera in dataset.cameras
        for name in dataset.names(camera)
    ]


def chosen(sources: Sequence[Source], patterns: Sequence[str]) -> list[Source]:
    """Return the cases whose name matches one of the patterns, such as ``bear*``, or all if there is no pattern."""
    kept = [source for source in sources if not patterns or any(fnmatch(source.name, pattern) for pattern in patterns)]
    if not kept:
        names = ", ".join(dict.fromkeys(source.name for source in sources)) or "none"
        raise NormalMeshError(f"no case matches {' or '.join(patterns) or 'the camera'}; the cases are: {names}")
    return kept


def first_of_groups(sources: Sequence[Source]) -> list[Source]:
    """Return one case per group, with its first camera, for pictures."""
    return list({source.group: source for source in reversed(sources)}.values())[::-1]


def _rendered(model: Callable[[], Trimesh], size: int, camera: str) -> Case:
    return render_normal_map(model(), size, camera, name=model.__name__)
