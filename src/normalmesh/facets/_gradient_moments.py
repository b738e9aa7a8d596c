"""Kernel of :mod:`normalmesh.facets.gradient_moments`."""

from normalmesh.facets._face_means import pixel_plane
from normalmesh.mesh._raster import by_height, face_edges, first_row, row_span
from normalmesh.normals._camera import ray, tangents
from normalmesh.normals._normal_map import normal_at
from normalmesh.runtime.kernels import inner, kernel

#: Columns of the table of sums over the pixels of a face: their number, the place (u, v) relative to the centroid, the
#: slopes ∂_u z, ∂_v z of the pixel's plane at the centroid, products of places, of slopes (rows) and places (columns),
#: the square of the slope, and the covariance of slopes by noise of one radian on the normal.
COUNT, PLACE_U, PLACE_V, SLOPE_U, SLOPE_V, PLACES_UU, PLACES_UV, PLACES_VV = range(8)
MIXED_UU, MIXED_UV, MIXED_VU, MIXED_VV, SQUARE, NOISE_UU, NOISE_UV, NOISE_VV = range(8, 16)
COLUMNS = 16


@inner(forceinline=True)
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inner(forceinline=True)
def noise_products(slope_u, slope_v, w, r, camera):
    """Return the covariance (uu, uv, vv) of slopes by noise of one radian, ⟨t_i, t_j⟩/⟨n,r⟩² with t_i = τ_i + g_i r."""
    p, q = tangents(camera)
    along_u = p[0] + slope_u * r[0], p[1] + slope_u * r[1], p[2] + slope_u * r[2]
    along_v = q[0] + slope_v * r[0], q[1] + slope_v * r[1], q[2] + slope_v * r[2]
    scale = 1.0 / (w * w)
    return scale * dot(along_u, along_u), scale * dot(along_u, along_v), scale * dot(along_v, along_v)


@inner(forceinline=True)
def add_moments(row, n, place, centre, camera):
    """Add a pixel with normal n at a place (u, v) to the sums of a face with this centroid."""
    along_u, along_v, w, _ = pixel_plane(n, place[0], place[1], centre[0], centre[1], camera)
    slope_u, slope_v = -along_u / w, -along_v / w
    u, v = place[0] - centre[0], place[1] - centre[1]
    row[COUNT] += 1.0
    row[PLACE_U] += u
    row[PLACE_V] += v
    row[SLOPE_U] += slope_u
    row[SLOPE_V] += slope_v
    row[PLACES_UU] += u * u
    row[PLACES_UV] += u * v
    row[PLACES_VV] += v * v
    row[MIXED_UU] += slope_u * u
    row[MIXED_UV] += slope_u * v
    row[MIXED_VU] += slope_v * u
    row[MIXED_VV] += slope_v * v
    row[SQUARE] += slope_u * slope_u + slope_v * slope_v
    uu, uv, vv = noise_products(slope_u, slope_v, w, ray(centre[0], centre[1], camera), camera)
    row[NOISE_UU] += uu
    row[NOISE_UV] += uv
    row[NOISE_VV] += vv


@kernel
def gradient_moments(first, last, mesh, normal_map, table):
    """Fill rows of the table (M, COLUMNS) of sums over the foreground pixels whose centres lie in a face."""
    vertices, faces = mesh.vertices, mesh.faces
    normals, mask, camera = normal_map.normals, normal_map.mask, normal_map.camera
    rows, columns = mask.shape
    for f in range(first, last):
        i, j, k = faces[f, 0], faces[f, 1], faces[f, 2]
        a, b, c = (vertices[i, 0], vertices[i, 1]), (vertices[j, 0], vertices[j, 1]), (vertices[k, 0], vertices[k, 1])
        centre = (a[0] + b[0] + c[0]) / 3.0, (a[1] + b[1] + c[1]) / 3.0
        top, middle, bottom = by_height(a, b, c)
        edges = face_edges(top, middle, bottom)
        middle_row = first_row(middle[1], rows)
        sums = table[f]
        sums[:] = 0.0
        for row in range(first_row(top[1], rows), first_row(bottom[1], rows)):
            start, end = row_span(edges, row, middle_row, columns)
            for column in range(start, end):
                if mask[row, column]:
                    add_moments(sums, normal_at(normals, row, column), (column + 0.5, row + 0.5), centre, camera)
