"""Settings shared by all tests."""

import signal
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

# The first call of a kernel compiles it, which is no sign of a slow test.
settings.register_profile("normalmesh", deadline=None, max_examples=60)
settings.load_profile("normalmesh")

# Ignored where tests run in the background, and then in all processes that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

CASES = Path(__file__).parents[2] / "shared" / "cases"


#: Maps of steps that no continuous surface has: their normals do not determine a convention.
STEPS = ("bini_stripes", "bini_tent")


@pytest.fixture
def continuous_cases(cases: Path) -> list[Path]:
    """The folders of the shared normal maps that a continuous surface explains at least in most places."""
    return [path.parent for path in sorted(cases.glob("*/normals.png")) if path.parent.name not in STEPS]


@pytest.fixture(scope="session")
def cases() -> Path:
    """The folder of shared normal maps; tests that need it are skipped where it is missing."""
    if not CASES.is_dir():
        pytest.skip("the shared cases are not on this machine")
    return CASES


def silent_diagnosis(normals, mask=None, camera=None):
    return SimpleNamespace(axes=None, candidates=("+x+y+z",), strongly_excludes=lambda convention: False)


@pytest.fixture
def no_diagnosis(monkeypatch, request):
    """Tiny and odd maps are for reading, not for diagnosing; tests of the diagnosis ask for it."""
    if "real_diagnosis" not in request.fixturenames:
        monkeypatch.setattr(import_module("normalmesh.normals.diagnosis"), "diagnose", silent_diagnosis)


@pytest.fixture
def real_diagnosis():
    """Asks for the diagnosis as it is."""
