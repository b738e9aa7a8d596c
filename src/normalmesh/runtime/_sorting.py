"""Sorting inside kernels."""

from normalmesh.runtime.kernels import inner


@inner(forceinline=True)
def sort(items, low, high, key, table):
    """Sort the integers ``items[low:high]`` by key(item, table), then by item. Shell sort, as there are mostly few."""
    gap = 1
    while 9 * gap < high - low:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(low + gap, high):
            item = items[k]
            value = key(item, table)
            place = k
            while place - gap >= low:
                before = items[place - gap]
                other = key(before, table)
                if other < value or (other == value and before < item):
                    break
                items[place] = before
                place -= gap
            items[place] = item
        gap //= 3
