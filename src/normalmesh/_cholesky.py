"""Kernels of the multifrontal Cholesky factorisation A = UᵀU along the blocks of a nested dissection.

Block s eliminates the positions ``start[s] … stop[s] − 1``. Its rows of U are one dense panel (k, k + b): k own
columns, then the b later positions ``rows[border[s]:border[s + 1]]`` it is coupled to. What it contributes to those is
a dense update (b, b), upper triangle, that is added into the panel and update of its parent.
"""

import numpy as np

from normalmesh._kernels import inner, kernel

#: Rows of a panel that are eliminated before the rest is updated: as many as stay in the first-level cache.
_STRIP = 8


@kernel
def borders(indptr, indices, order, start, stop):
    """Positions beyond each block that it is coupled to, and the parent of each block (−1: none)."""
    n, blocks = order.size, start.size
    position, owner = np.empty(n, np.int32), np.empty(n, np.int32)
    for s in range(blocks):
        for j in range(start[s], stop[s]):
            owner[j] = s
            position[order[j]] = j
    parent = np.full(blocks, -1, np.int32)
    child, sibling = np.full(blocks, -1, np.int32), np.full(blocks, -1, np.int32)
    border = np.zeros(blocks + 1, np.int64)
    rows = np.empty(8 * n, np.int32)
    seen = np.full(n, -1, np.int32)
    found = np.empty(n, np.int32)
    for s in range(blocks):
        count = 0
        for j in range(start[s], stop[s]):
            v = order[j]
            for e in range(indptr[v], indptr[v + 1]):
                p = position[indices[e]]
                if p >= stop[s] and seen[p] != s:
                    seen[p] = s
                    found[count] = p
                    count += 1
        c = child[s]
        while c >= 0:
            for q in range(border[c], border[c + 1]):
                p = rows[q]
                if p >= stop[s] and seen[p] != s:
                    seen[p] = s
                    found[count] = p
                    count += 1
            c = sibling[c]
        border[s + 1] = border[s] + count
        if border[s + 1] > rows.size:
            more = np.empty(2 * border[s + 1], np.int32)
            for q in range(border[s]):
                more[q] = rows[q]
            rows = more
        _sort(found, count)
        for q in range(count):
            rows[border[s] + q] = found[q]
        if count > 0:
            p = owner[rows[border[s]]]
            parent[s] = p
            sibling[s] = child[p]
            child[p] = s
    return position, border, rows[: border[blocks]].copy(), parent, child, sibling


@inner(forceinline=True)
def _sort(values, count):
    """Sort the first numbers of an array, by Shell's sort."""
    gap = 1
    while 9 * gap < count:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(gap, count):
            value = values[k]
            place = k
            while place >= gap and values[place - gap] > value:
                values[place] = values[place - gap]
                place -= gap
            values[place] = value
        gap //= 3


@kernel
def postorder(parent, child, sibling):
    """Blocks such that every subtree is contiguous and ends with its root."""
    blocks = parent.size
    post, path, upcoming = np.empty(blocks, np.int32), np.empty(blocks, np.int32), child.copy()
    done = 0
    for root in range(blocks):
        if parent[root] >= 0:
            continue
        top = 0
        path[0] = root
        while top >= 0:
            c = upcoming[path[top]]
            if c >= 0:
                upcoming[path[top]] = sibling[c]
                top += 1
                path[top] = c
            else:
                post[done] = path[top]
                done += 1
                top -= 1
    return post


@kernel
def assign_tasks(start, stop, border, parent, post, share):
    """Task of each block: 0 … T − 1 for disjoint subtrees with at most ``share`` of all work, T for the rest above."""
    blocks = parent.size
    work = np.zeros(blocks)
    total = 0.0
    for s in post:
        k, b = stop[s] - start[s], border[s + 1] - border[s]
        own = k * (k + b) * (k + b) + 100.0
        total += own
        work[s] += own
        if parent[s] >= 0:
            work[parent[s]] += work[s]
    task = np.full(blocks, -1, np.int32)
    tasks = 0
    for t in range(blocks - 1, -1, -1):
        s = post[t]
        above = parent[s]
        if above >= 0 and task[above] >= 0:
            task[s] = task[above]
        elif work[s] <= share * total:
            task[s] = tasks
            tasks += 1
    for s in range(blocks):
        if task[s] < 0:
            task[s] = tasks
    return task, tasks


@kernel
def layout(start, stop, border, parent, post, task, tasks):
    """Where each panel starts in the factor (B + 1,), each update in the workspace (B,), and the workspace's size.

    Updates live on stacks, two for each task: a block's update goes onto one while its children's, on the other,
    are still read. Depth in the tree alternates between the two.
    """
    blocks = start.size
    panel, update = np.zeros(blocks + 1, np.int64), np.empty(blocks, np.int64)
    for s in range(blocks):
        k, b = stop[s] - start[s], border[s + 1] - border[s]
        panel[s + 1] = panel[s] + k * (k + b)
    odd = np.zeros(blocks, np.int64)
    for t in range(blocks - 1, -1, -1):
        s = post[t]
        if parent[s] >= 0:
            odd[s] = 1 - odd[parent[s]]
    height, peak = np.zeros(2 * (tasks + 1), np.int64), np.zeros(2 * (tasks + 1), np.int64)
    first_child = np.full(blocks, -1, np.int32)
    for s in post:
        stack = 2 * task[s] + odd[s]
        update[s] = height[stack]
        height[stack] += (border[s + 1] - border[s]) ** 2
        peak[stack] = max(peak[stack], height[stack])
        if first_child[s] >= 0:
            height[stack ^ 1] = update[first_child[s]]
        above = parent[s]
        if above >= 0 and task[above] == task[s] and first_child[above] < 0:
            first_child[above] = s
    total = 0
    for stack in range(peak.size):
        height[stack] = total
        total += peak[stack]
    for s in range(blocks):
        update[s] += height[2 * task[s] + odd[s]]
    return panel, update, total


@inner(fastmath={"contract"}, error_model="numpy")
def _subtract(target, factor, row):
    for i in range(target.size):
        target[i] -= factor * row[i]


@inner(fastmath={"contract"}, error_model="numpy")
def _subtract_four(target, f, a, b, c, d):
    for i in range(target.size):
        target[i] -= f[0] * a[i] + f[1] * b[i] + f[2] * c[i] + f[3] * d[i]


@inner(fastmath={"contract"}, error_model="numpy")
def _subtract_four_twice(target, other, f, g, a, b, c, d):
    """Two target rows at once: each source row is loaded once for both."""
    for i in range(target.size):
        target[i] -= f[0] * a[i] + f[1] * b[i] + f[2] * c[i] + f[3] * d[i]
        other[i] -= g[0] * a[i] + g[1] * b[i] + g[2] * c[i] + g[3] * d[i]


@inner(error_model="numpy")
def _eliminate(panel, first, last, target, low, high, shift):
    """Subtract the outer products of the panel's rows first … last − 1 from rows and columns ≥ low of the target.

    Row and column i of the panel's numbering, low ≤ i < high, are row and column i − shift of the target.
    """
    for i in range(low, high, 2):
        pair = i + 1 < high
        t = i - shift
        j = first
        while j + 4 <= last:
            a, b, c, d = panel[j], panel[j + 1], panel[j + 2], panel[j + 3]
            f = (a[i], b[i], c[i], d[i])
            if pair:
                g = (a[i + 1], b[i + 1], c[i + 1], d[i + 1])
                target[t, t] -= f[0] * f[0] + f[1] * f[1] + f[2] * f[2] + f[3] * f[3]
                r = i + 1
                _subtract_four_twice(target[t, t + 1 :], target[t + 1, t + 1 :], f, g, a[r:], b[r:], c[r:], d[r:])
            else:
                _subtract_four(target[t, t:], f, a[i:], b[i:], c[i:], d[i:])
            j += 4
        while j < last:
            _subtract(target[t, t:], panel[j, i], panel[j, i:])
            if pair:
                _subtract(target[t + 1, t + 1 :], panel[j, i + 1], panel[j, i + 1 :])
            j += 1


@inner(error_model="numpy")
def _factorise_front(panel, update):
    """Eliminate the own rows of a front; the first row whose pivot is not positive, or −1."""
    k, width = panel.shape
    for first in range(0, k, _STRIP):
        last = min(first + _STRIP, k)
        for j in range(first, last):
            pivot = panel[j, j]
            if not 0 < pivot < np.inf:
                return j
            scale = 1 / np.sqrt(pivot)
            for i in range(j, width):
                panel[j, i] *= scale
            for i in range(j + 1, last):
                _subtract(panel[i, i:], panel[j, i], panel[j, i:])
        _eliminate(panel, first, last, panel, last, k, 0)
        _eliminate(panel, first, last, update, k, width, k)
    return -1


@inner(forceinline=True)
def _add_child(child_update, local, k, panel, update):
    """Add a child's update; ``local`` (b_child,) are its rows in the numbering of the parent's front."""
    count = local.size
    for x in range(count):
        i = local[x]
        if i < k:
            for y in range(x, count):
                panel[i, local[y]] += child_update[x, y]
        else:
            for y in range(x, count):
                update[i - k, local[y] - k] += child_update[x, y]


@inner
def _front(s, matrix, extra, tree, place, factor, workspace, local):
    """Assemble and factorise the front of block s; the position whose pivot is not positive, or −1."""
    indptr, indices, values = matrix
    order, position, start, stop, border, rows, child, sibling = tree
    panel_at, update_at = place
    low, k = start[s], stop[s] - start[s]
    b = border[s + 1] - border[s]
    panel = factor[panel_at[s] : panel_at[s + 1]].reshape(k, k + b)
    update = workspace[update_at[s] : update_at[s] + b * b].reshape(b, b)
    panel[:] = 0
    update[:] = 0
    for j in range(k):
        local[low + j] = j
    for q in range(b):
        local[rows[border[s] + q]] = k + q
    for j in range(k):
        v = order[low + j]
        panel[j, j] += extra[v]
        for e in range(indptr[v], indptr[v + 1]):
            p = position[indices[e]]
            if p >= low + j:
                panel[j, local[p]] += values[e]
    c = child[s]
    while c >= 0:
        size = border[c + 1] - border[c]
        there = np.empty(size, np.int32)
        for q in range(size):
            there[q] = local[rows[border[c] + q]]
        _add_child(workspace[update_at[c] : update_at[c] + size * size].reshape(size, size), there, k, panel, update)
        c = sibling[c]
    bad = _factorise_front(panel, update)
    return low + bad if bad >= 0 else -1


@kernel
def factorise(first, last, matrix, extra, tree, place, schedule, factor, workspace, failed):
    """Fill ``factor`` for the matrix (indptr, indices, values) plus ``extra`` (n,) on its diagonal, task by task.

    ``schedule`` (T + 2,) pointers and blocks: those of each subtree, then the rest, which must come after all others.
    ``failed`` (T + 1,), −1 before, becomes a position of each task whose pivot is not positive.
    """
    pointers, blocks = schedule
    local = np.empty(extra.size, np.int32)
    for t in range(first, last):
        for q in range(pointers[t], pointers[t + 1]):
            failed[t] = _front(blocks[q], matrix, extra, tree, place, factor, workspace, local)
            if failed[t] >= 0:
                break


@kernel(fastmath={"contract"}, error_model="numpy")
def substitute(tree, panel_at, factor, right_side):
    """Solve UᵀU x = b, both (n,) in the numbering of the matrix."""
    order, _, start, stop, border, rows, _, _ = tree
    n = order.size
    x, front = np.empty(n), np.empty(n)
    for j in range(n):
        x[j] = right_side[order[j]]
    for s in range(start.size):
        low, k = start[s], stop[s] - start[s]
        width = k + border[s + 1] - border[s]
        panel = factor[panel_at[s] : panel_at[s + 1]].reshape(k, width)
        front[:width] = 0
        for j in range(k):
            value = (x[low + j] - front[j]) / panel[j, j]
            x[low + j] = value
            for i in range(j + 1, width):
                front[i] += panel[j, i] * value
        for i in range(k, width):
            x[rows[border[s] + i - k]] -= front[i]
    for s in range(start.size - 1, -1, -1):
        low, k = start[s], stop[s] - start[s]
        width = k + border[s + 1] - border[s]
        panel = factor[panel_at[s] : panel_at[s + 1]].reshape(k, width)
        for i in range(k, width):
            front[i] = x[rows[border[s] + i - k]]
        for j in range(k - 1, -1, -1):
            total = 0.0
            for i in range(j + 1, width):
                total += panel[j, i] * front[i]
            front[j] = (x[low + j] - total) / panel[j, j]
            x[low + j] = front[j]
    solution = np.empty(n)
    for j in range(n):
        solution[order[j]] = x[j]
    return solution
