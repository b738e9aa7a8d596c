"""A loop that does the tasks of tiles in this process."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field


@dataclass
class Loop:
    """Does tasks one after the other; arguments are pickled, as for another process.

    Attributes
    ----------
    stages
        Number of tasks by stage.
    """

    stages: dict[str, int] = field(default_factory=dict)

    def __call__(self, stage, function, arguments, *, work=0.0):
        assert stage not in self.stages, f"two stages have the name {stage}"
        self.stages[stage] = len(arguments)
        return {key: function(*pickle.loads(pickle.dumps(each))) for key, each in arguments.items()}
