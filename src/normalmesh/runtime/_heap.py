"""Binary heaps inside kernels: arrays of keys and of items, ordered by key and then by item."""

from normalmesh.runtime.kernels import inner


@inner
def push(keys, items, size, key, item):
    """Add an entry to a heap of ``size`` entries; return the new size. The arrays must have room for it."""
    place = size
    while place > 0:
        parent = (place - 1) // 2
        if not _comes_first(key, item, keys[parent], items[parent]):
            break
        keys[place], items[place] = keys[parent], items[parent]
        place = parent
    keys[place], items[place] = key, item
    return size + 1


@inner
def drop_first(keys, items, size):
    """Take the first entry out of a heap; return the new size."""
    size -= 1
    keys[0], items[0] = keys[size], items[size]
    if size > 0:
        sift_down(keys, items, 0, size)
    return size


@inner(forceinline=True)
def sift_down(keys, items, place, size):
    """Restore the order of a binary heap, by key and then by item, below one place."""
    key, item = keys[place], items[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and _comes_first(keys[child + 1], items[child + 1], keys[child], items[child]):
            child += 1
        if not _comes_first(keys[child], items[child], key, item):
            break
        keys[place], items[place] = keys[child], items[child]
        place = child
    keys[place], items[place] = key, item


@inner
def _comes_first(key, item, other_key, other_item):
    """Compare two entries of the heap, by key and then by item."""
    return key < other_key or (key == other_key and item < other_item)
