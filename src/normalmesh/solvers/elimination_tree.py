"""Tree of the blocks of an elimination: order, parallel tasks, and memory of updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Float, Int, Int32


@dataclass(frozen=True)
class EliminationTree:
    """Forest of blocks, in which children come before parents."""

    parent: Int  # (B,) −1 for roots
    generations: list[Int]  # the blocks of each depth

    @classmethod
    def of(cls, parent: Int32) -> EliminationTree:
        """Return the tree with these parents (B,)."""
        above = parent.astype(np.int64)
        depth, reached = np.zeros(above.size, np.int64), above
        while (reached >= 0).any():
            depth += reached >= 0
            reached = np.where(reached >= 0, above[reached], -1)
        by_depth = np.argsort(depth, kind="stable")
        return cls(above, np.split(by_depth, np.cumsum(np.bincount(depth))[:-1]))

    def postorder(self) -> Int:
        """Return the rank (B,) of each block in postorder: every subtree is contiguous and ends with its root."""
        size = self.sums(np.ones(self.parent.size, np.int64))
        return self._nested(size) + size - 1

    def tasks(self, work: Float, share: float) -> tuple[Int, Int]:
        """Return the task (B,) of each block, and the first task of each level and the number of tasks (L + 1,).

        Tasks of one level do not depend on each other. Those of the first level are disjoint subtrees with at most
        ``share`` of all work (B,). Blocks above are tasks on their own, each on a level above those of its children.
        """
        level = (self.sums(work) > share * work.sum()).astype(np.int64)
        for generation in reversed(self.generations[1:]):
            above = self.parent[generation]
            np.maximum.at(level, above, np.where(level[generation] > 0, level[generation] + 1, level[above]))
        heads = np.flatnonzero((level > 0) | (self.parent < 0) | (level[self.parent] > 0))
        heads = heads[np.argsort(level[heads], kind="stable")]
        task = np.full(level.size, -1)
        task[heads] = np.arange(heads.size)
        for generation in self.generations[1:]:
            task[generation] = np.where(task[generation] < 0, task[self.parent[generation]], task[generation])
        return task, np.concatenate([[0], np.cumsum(np.bincount(level[heads]))])

    def update_places(self, size: Int, task: Int) -> tuple[Int, int, int]:
        """Return the place (B,) of each block's update, of ``size`` (B,) numbers, and the lengths of buffer and stacks.

        Updates that other tasks read are kept in a buffer, as by :meth:`kept_places`. All others, with the place ~p,
        begin at p on stacks of their task, which need not outlive it. There are two: a block's update is written to one
        while its children's updates are read from the other. Depth in the tree alternates between the two. Below an
        update lie those of its elder siblings, and everything below its grandparent's update.
        """
        inside = (self.parent >= 0) & (task[self.parent] == task)
        stacked = np.where(inside, size, 0)
        below, stack = self.sums_before(stacked), 2 * task
        for depth, generation in enumerate(self.generations):
            further = np.where(inside[generation], self.parent[self.parent[generation]], -1)
            within = (further >= 0) & (task[further] == task[generation])
            below[generation] = np.where(inside[generation], below[generation], 0) + np.where(within, below[further], 0)
            stack[generation] += depth % 2
        peak = np.zeros(2 * (int(task.max(initial=0)) + 1), np.int64)
        np.maximum.at(peak, stack, below + stacked)
        below += np.where(stack % 2, peak[stack - 1], 0)
        kept, length = self.kept_places(size - stacked)
        return np.where(inside, ~below, kept), length, int(peak.reshape(-1, 2).sum(axis=1).max())

    def kept_places(self, size: Int) -> tuple[Int, int]:
        """Return offsets (B,) at which updates of ``size`` (B,) numbers can be kept, and the length of the buffer.

        Updates of blocks none of which lies above another do not overlap. An update overlaps none of its children's,
        so that it can be written while these are read: even and odd depths have buffers of their own. Each buffer is as
        long as the largest sum of sizes of blocks of its depths none of which lies above another.
        """
        place, length = np.zeros(size.size, np.int64), 0
        for parity in (0, 1):
            own, below = np.zeros(size.size, np.int64), np.zeros(size.size, np.int64)
            members = np.concatenate([np.empty(0, np.int64), *self.generations[parity::2]])
            own[members] = size[members]
            for generation in reversed(self.generations):
                own[generation] = np.maximum(own[generation], below[generation])
                if generation is not self.generations[0]:
                    np.add.at(below, self.parent[generation], own[generation])
            place[members] = length + self._nested(own)[members]
            length += int(own[self.generations[0]].sum())
        return place, length

    def _nested(self, size: Int) -> Int:
        """Return where the range of each block (B,) begins, if it encloses those of its children side by side."""
        first = self.sums_before(size)
        for generation in self.generations[1:]:
            first[generation] += first[self.parent[generation]]
        return first

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sums (B,) of the values (B,) over each subtree."""
        sums = values.copy()
        for generation in reversed(self.generations[1:]):
            np.add.at(sums, self.parent[generation], sums[generation])
        return sums

    def sums_before(self, values: Int) -> Int:
        """Return the sums (B,) of the values (B,) over the elder siblings of each block; roots are siblings, too."""
        families = np.argsort(self.parent, kind="stable")
        sums = np.cumsum(values[families]) - values[families]
        parents = self.parent[families]
        eldest = np.searchsorted(parents, parents)
        before = np.empty(values.size, np.int64)
        before[families] = sums - sums[eldest]
        return before
