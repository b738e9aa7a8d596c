"""Settings shared by all tests."""

from pathlib import Path

import pytest
from hypothesis import settings

# The first call of a kernel compiles it, which is no sign of a slow test.
settings.register_profile("normalmesh", deadline=None, max_examples=60)
settings.load_profile("normalmesh")

CASES = Path(__file__).parents[2] / "shared" / "cases"


@pytest.fixture(scope="session")
def cases() -> Path:
    """The folder of shared normal maps; tests that need it are skipped where it is missing."""
    if not CASES.is_dir():
        pytest.skip("the shared cases are not on this machine")
    return CASES
