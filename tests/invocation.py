"""Run the command line in this process, with small normal maps to give to it."""

from __future__ import annotations

import functools
from pathlib import Path
from subprocess import CompletedProcess

from click.testing import CliRunner, Result

from normalmesh.cli import normalmesh
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.files.encoding import encode_normals

#: Side of the medallion, in pixels.
SIZE = 96
#: Printed by the first command that compiles a kernel: which one that is depends on what ran before.
COMPILING = "compiling kernels, first run only\n"


def invoke(*arguments: object) -> Result:
    """Run a command."""
    return CliRunner().invoke(normalmesh, [str(argument) for argument in arguments])


def succeed(*arguments: object) -> Result:
    """Run a command that must succeed."""
    result = invoke(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def messages(result: Result | CompletedProcess[str]) -> str:
    """Return what a command printed to standard error, whether kernels were compiled or not."""
    return result.stderr.replace(COMPILING, "")


@functools.cache
def medallion(size: int = SIZE) -> Medallion:
    """Return the medallion of ``size`` × ``size`` pixels."""
    return Medallion(size)


def write_medallion(path: Path, size: int = SIZE, axes: tuple[int, int, int] = (1, 1, 1)) -> Path:
    """Write the normals of the medallion, with the mask as alpha channel, and return the path.

    ``axes`` are the signs of the three components.
    """
    normal_map = medallion(size).normal_map
    path.write_bytes(encode_normals(path, normal_map.normals * axes, normal_map.mask))
    return path
