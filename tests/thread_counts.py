"""Run a computation on one thread and on several, to compare the results."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from normalmesh.runtime import threads
from normalmesh.runtime.threads import limited_threads


def on_one_and_on_several(compute: Callable[[], Any]) -> tuple[Any, Any]:
    """Return the results on one thread, and on four that share even the shortest loops in ranges of seven."""
    with limited_threads(1):
        alone = compute()
    with patch.object(threads, "_division", lambda count, grain: (4, 7)):
        return alone, compute()
