"""Kernels of :mod:`normalmesh.mesh.screen_mesh`: the mesh of a pixel mask and the corner table.

A *corner* is a vertex seen from one face: corner ``3·f + k`` is vertex ``faces[f, k]`` in face f. It stands for the
edge across from it, which runs from the next corner to the previous one. ``opposite[c]`` is the corner on the other
side of that edge, −1 at the boundary.
"""

from normalmesh.mesh._predicates import orientation
from normalmesh.runtime._sorting import sort
from normalmesh.runtime.kernels import inner, kernel

#: Values of ``opposite`` that mark invalid edges while a corner table is made.
NON_MANIFOLD, MISORIENTED = -2, -3


@inner
def next_corner(corner):
    """Return the next corner of the same face, counter-clockwise."""
    return corner + 1 if corner % 3 != 2 else corner - 2


@inner
def previous_corner(corner):
    """Return the previous corner of the same face."""
    return corner - 1 if corner % 3 != 0 else corner + 2


@inner
def _inside(mask, i, j):
    """Check whether a pixel is in the image and in the foreground."""
    return 0 <= i < mask.shape[0] and 0 <= j < mask.shape[1] and mask[i, j]


@inner
def vertices_at(mask, i, j):
    """Return the number of vertices at the pixel corner (i, j): two if pixels touch only diagonally, to be manifold."""
    above, below, left, right = i > 0, i < mask.shape[0], j > 0, j < mask.shape[1]
    above_left = 1 if above and left and mask[i - 1, j - 1] else 0
    above_right = 1 if above and right and mask[i - 1, j] else 0
    below_left = 1 if below and left and mask[i, j - 1] else 0
    below_right = 1 if below and right and mask[i, j] else 0
    count = above_left + above_right + below_left + below_right
    return 2 if count == 2 and above_left == below_right else min(count, 1)


@kernel
def count_rows(first, last, mask, counts):
    """Fill ``counts`` (H + 1, 2) int64: the vertices and the foreground pixels of rows of pixel corners."""
    for i in range(first, last):
        vertices = 0
        pixels = 0
        for j in range(mask.shape[1] + 1):
            vertices += vertices_at(mask, i, j)
            pixels += _inside(mask, i, j)
        counts[i, 0] = vertices
        counts[i, 1] = pixels


@kernel
def fill_vertices(first, last, mask, before, number, vertices):
    """Fill vertices (N, 2) of rows of pixel corners, and ``number`` (H + 1, W + 1), the first vertex of each corner.

    ``before`` (H + 2, 2) are the vertices and foreground pixels before each row.
    """
    for i in range(first, last):
        vertex = before[i, 0]
        for j in range(mask.shape[1] + 1):
            number[i, j] = vertex
            for _ in range(vertices_at(mask, i, j)):
                vertices[vertex, 0] = j
                vertices[vertex, 1] = i
                vertex += 1


@kernel
def fill_faces(first, last, mask, before, number, faces):
    """Fill faces (M, 3) of rows of pixels: two counter-clockwise triangles for each foreground pixel."""
    for i in range(first, last):
        face = 2 * before[i, 1]
        for j in range(mask.shape[1]):
            if not mask[i, j]:
                continue
            # A split corner's second vertex belongs to the pixel below it.
            top_left = number[i, j] + (vertices_at(mask, i, j) == 2)
            top_right = number[i, j + 1] + (vertices_at(mask, i, j + 1) == 2)
            bottom_left = number[i + 1, j]
            bottom_right = number[i + 1, j + 1]
            faces[face, 0], faces[face, 1], faces[face, 2] = top_left, bottom_left, bottom_right
            faces[face + 1, 0], faces[face + 1, 1], faces[face + 1, 2] = top_left, bottom_right, top_right
            face += 2


@kernel
def edge_buckets(faces, bucket, starts):
    """Sort corners (3M,) by the smaller end of the edges across from them into ``bucket``.

    ``bucket[starts[v]:starts[v + 1]]`` become those with the smaller end v. ``starts`` (N + 2,) must be zero.
    """
    for f in range(faces.shape[0]):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        starts[min(b, c) + 2] += 1
        starts[min(c, a) + 2] += 1
        starts[min(a, b) + 2] += 1
    for k in range(1, starts.size - 1):
        starts[k + 1] += starts[k]
    for f in range(faces.shape[0]):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        for k in range(3):
            bucket[starts[min(b, c) + 1]] = 3 * f + k
            starts[min(b, c) + 1] += 1
            a, b, c = b, c, a


@kernel
def match_corners(first, last, faces, bucket, starts, opposite):
    """Fill ``opposite`` (3M,) for edges whose smaller end is among the given vertices.

    It is −1 at the boundary and on invalid edges; one corner of each invalid edge becomes ``NON_MANIFOLD``, for more
    than two faces, or ``MISORIENTED``, for two faces of opposite orientation.
    """
    vertex_of = faces.reshape(-1)
    for vertex in range(first, last):
        sort(bucket, starts[vertex], starts[vertex + 1], _far_end, vertex_of)
        k, end = starts[vertex], starts[vertex + 1]
        while k < end:
            far_end = _far_end(bucket[k], vertex_of)
            run = k
            while run < end and _far_end(bucket[run], vertex_of) == far_end:
                opposite[bucket[run]] = -1
                run += 1
            one, other = bucket[k], bucket[run - 1]
            if run - k > 2:
                opposite[one] = NON_MANIFOLD
            elif run - k == 2:
                if vertex_of[next_corner(one)] == vertex_of[next_corner(other)]:
                    opposite[one] = MISORIENTED
                else:
                    opposite[one], opposite[other] = other, one
            k = run


@inner
def _far_end(corner, vertex_of):
    """Return the larger end of the edge across from a corner."""
    return max(vertex_of[next_corner(corner)], vertex_of[previous_corner(corner)])


@kernel
def component_labels(groups, labels):
    """Fill ``labels`` with the connected component (N,) of each vertex, numbered in the order of their first vertices.

    Vertices of a group, a row of ``groups`` (M, K) int32 such as a face or an edge, are connected.
    """
    parent = labels
    for vertex in range(parent.size):
        parent[vertex] = vertex
    for row in range(groups.shape[0]):
        a = _root(parent, groups[row, 0])
        for k in range(1, groups.shape[1]):
            b = _root(parent, groups[row, k])
            if a < b:
                parent[b] = a
            else:
                parent[a] = b
                a = b
    components = 0
    for vertex in range(labels.size):
        # Roots are the smallest vertex of their component, so labels before this one are final already.
        root = parent[vertex]
        if root == vertex:
            labels[vertex] = components
            components += 1
        else:
            labels[vertex] = labels[root]


@inner
def _root(parent, vertex):
    """Return the root of a vertex, and shorten the path to it."""
    while parent[vertex] != vertex:
        parent[vertex] = parent[parent[vertex]]
        vertex = parent[vertex]
    return vertex


@kernel
def face_orientations(first, last, vertices, faces, signs):
    """Fill ``signs`` (M,) int8: +1 counter-clockwise seen by the viewer, −1 inverted, 0 degenerate; exact."""
    for f in range(first, last):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        signs[f] = orientation(
            vertices[a, 0], vertices[a, 1], vertices[b, 0], vertices[b, 1], vertices[c, 0], vertices[c, 1]
        )
