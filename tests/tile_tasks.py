"""Tasks that tests give to workers, which import them from here."""

import os
import signal
import warnings
from pathlib import Path

import numpy as np

from normalmesh import NormalMeshError, NormalMeshWarning
from normalmesh.runtime.threads import allowed_threads


def squares(number):
    """Return the squares of the numbers below one, and the process that made them."""
    return {"squares": np.arange(number) ** 2, "process": np.array(os.getpid())}


def total(results):
    return {"total": sum(result["squares"].sum() for result in results)[None]}


def difference(common, own):
    """Return the sum of one large array without that of another, and the process."""
    return {"difference": np.array([common.sum() - own["x"].sum()]), "process": np.array(os.getpid())}


def counted(number, folder):
    """Return a number, and leave a file for each call."""
    (Path(folder) / f"{number}-{os.urandom(4).hex()}").touch()
    return {"number": np.array([number])}


def refused(number):
    """Refuse the number 2, after a warning."""
    warnings.warn("odd numbers are odd", NormalMeshWarning, stacklevel=1)
    if number == 2:
        raise NormalMeshError("two is refused: give another number")
    return {"number": np.array([number])}


def broken(number):
    raise KeyError(number)


def deadly(number, folder, deaths):
    """Kill the worker that begins with the number 2, so many times."""
    if number == 2 and len(list(Path(folder).iterdir())) < deaths:
        (Path(folder) / os.urandom(4).hex()).touch()
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
    return {"number": np.arange(number)}


def threads():
    return {"threads": np.array(allowed_threads())}
