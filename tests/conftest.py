"""Configure pytest and hypothesis, and define the fixtures that several folders of tests use."""

import os
import signal
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

import reference_counts  # noqa: F401  # registers its checks

# There is no deadline, because the first call of a kernel compiles it.
# In CI every run tries the same examples; elsewhere each run looks at new ones.
settings.register_profile("normalmesh", deadline=None, max_examples=60, derandomize="CI" in os.environ)
settings.load_profile("normalmesh")

# A shell starts background jobs with SIGINT ignored, and the processes that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

CASES = Path(__file__).parents[2] / "shared" / "cases"


#: Cases of steps, whose normals no continuous surface has: they do not determine a convention.
STEPS = ("bini_stripes", "bini_tent")


@pytest.fixture
def continuous_cases(cases: Path) -> list[Path]:
    """Return the folders of the shared cases whose normals are those of a continuous surface in most places."""
    found = [path.parent for path in sorted(cases.glob("*/normals.png")) if path.parent.name not in STEPS]
    assert found, f"{cases} has no normal maps"
    return found


@pytest.fixture(scope="session")
def cases() -> Path:
    """Return the folder of shared cases; skip the test if it is missing."""
    if not CASES.is_dir():
        pytest.skip("the shared cases are not on this machine")
    return CASES


def silent_diagnosis(pixels, camera, raw):
    """Return a diagnosis that finds no problem."""
    return SimpleNamespace(axes=None, candidates=("+x+y+z",), strongly_excludes=lambda convention: False)


@pytest.fixture
def no_diagnosis(monkeypatch, request):
    """Replace the diagnosis, which would warn of tiny and random maps, unless ``real_diagnosis`` is requested."""
    if "real_diagnosis" not in request.fixturenames:
        monkeypatch.setattr(import_module("normalmesh.normals.diagnosis"), "diagnose_pixels", silent_diagnosis)


@pytest.fixture
def real_diagnosis():
    """Keep the diagnosis in a test of a module that uses ``no_diagnosis``."""
