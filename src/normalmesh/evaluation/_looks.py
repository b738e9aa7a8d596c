"""Kernel of :mod:`normalmesh.evaluation.looks`."""

from normalmesh.runtime.kernels import kernel


@kernel
def add_owned_normals(owners, normals, mask, sums, counts):
    """Add the normals (H, W, 3) of foreground pixels to ``sums`` (M, 3) of the faces that own them, and count them.

    Returns the foreground pixels without a face, and the background pixels with one.
    """
    uncovered = spilled = 0
    for i in range(owners.shape[0]):
        for j in range(owners.shape[1]):
            f = owners[i, j]
            if f < 0:
                uncovered += mask[i, j]
            elif mask[i, j]:
                counts[f] += 1
                for k in range(3):
                    sums[f, k] += normals[i, j, k]
            else:
                spilled += 1
    return uncovered, spilled
