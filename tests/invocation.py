"""The command line in this process, and small maps for it."""

from __future__ import annotations

import functools
from pathlib import Path

from click.testing import CliRunner, Result

from normalmesh.cli import normalmesh
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.files.encoding import encode_normals

SIZE = 96


def invoke(*arguments: object) -> Result:
    """Run a command."""
    return CliRunner().invoke(normalmesh, [str(argument) for argument in arguments])


def succeed(*arguments: object) -> Result:
    """Run a command that must succeed."""
    result = invoke(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result


@functools.cache
def medallion() -> Medallion:
    return Medallion(SIZE)


def write_medallion(path: Path, axes: tuple[int, int, int] = (1, 1, 1)) -> Path:
    """The medallion's normals with the mask as alpha, each axis with the sign given."""
    normal_map = medallion().normal_map
    path.write_bytes(encode_normals(path, normal_map.normals * axes, normal_map.mask))
    return path
