"""Kernels of :mod:`normalmesh.pictures.oblique`."""

import math

from normalmesh.runtime.kernels import kernel


@kernel
def draw_faces(points, faces, normals, nearness, seen, back):
    """Rasterise triangles with a z-buffer. At equal depth, the triangle of smaller index is visible.

    ``points`` (N, 3) are column, row and nearness to the viewer. Fills ``nearness`` (H, W), initially −∞, ``seen``
    (H, W, 3) with the linearly interpolated vertex ``normals`` (N, 3), and ``back`` (H, W), true at back faces.
    """
    rows, columns = nearness.shape
    for f in range(len(faces)):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        au, av, bu, bv, cu, cv = points[a, 0], points[a, 1], points[b, 0], points[b, 1], points[c, 0], points[c, 1]
        area = (bu - au) * (cv - av) - (bv - av) * (cu - au)
        if area == 0.0:
            continue
        top, bottom = max(math.ceil(min(av, bv, cv) - 0.5), 0), min(math.floor(max(av, bv, cv) - 0.5), rows - 1)
        left, right = max(math.ceil(min(au, bu, cu) - 0.5), 0), min(math.floor(max(au, bu, cu) - 0.5), columns - 1)
        for i in range(top, bottom + 1):
            for j in range(left, right + 1):
                u, v = j + 0.5 - au, i + 0.5 - av
                second = (u * (cv - av) - v * (cu - au)) / area
                third = ((bu - au) * v - (bv - av) * u) / area
                first = 1.0 - second - third
                if first < 0.0 or second < 0.0 or third < 0.0:
                    continue
                near = first * points[a, 2] + second * points[b, 2] + third * points[c, 2]
                if near <= nearness[i, j]:
                    continue
                nearness[i, j] = near
                # Rows increase downwards, so that front faces, counter-clockwise to the viewer, have negative areas.
                back[i, j] = area > 0.0
                for k in range(3):
                    seen[i, j, k] = first * normals[a, k] + second * normals[b, k] + third * normals[c, k]
