"""Kernels of :mod:`normalmesh.decimation.start_quadrics`.

Screen quadrics have the columns UU, UV, VV, BU, BV and CONSTANT, as in :mod:`normalmesh.decimation._quadrics`.
"""

import math

from normalmesh.decimation._quadrics import BU, BV, CONSTANT, QUADRIC, UU, UV, VV
from normalmesh.mesh._closed_mesh import turn
from normalmesh.mesh._raster import by_height, face_edges, first_row, row_span
from normalmesh.normals._camera import jacobian
from normalmesh.normals._normal_map import nearest_pixel, normal_at
from normalmesh.runtime.kernels import inner, kernel


@inner(forceinline=True)
def corner_normal(row, column, normal_map):
    """Return the sum of the normals of the foreground pixels around a pixel corner."""
    normals, mask = normal_map.normals, normal_map.mask
    x = y = z = 0.0
    for i in range(max(row - 1, 0), min(row + 1, mask.shape[0])):
        for j in range(max(column - 1, 0), min(column + 1, mask.shape[1])):
            # Normals are zero outside the mask.
            x += normals[i, j, 0]
            y += normals[i, j, 1]
            z += normals[i, j, 2]
    return x, y, z


@inner(forceinline=True)
def pixel_metric(row, column, normal_map, regularisation):
    """Return A³_p · J_cᵀ M_p J_c as uu, uv and vv, the mean over the corners c of a foreground pixel.

    It is by how much the normal of the pixel deviates from those at its corners, eq. (15) on the pixel grid.
    """
    camera = normal_map.camera
    nx, ny, nz = normal_at(normal_map.normals, row, column)
    uu = uv = vv = 0.0
    for i in range(row, row + 2):
        for j in range(column, column + 2):
            x, y, z = corner_normal(i, j, normal_map)
            c = jacobian(x, y, z, float(j), float(i), camera)
            along_u, along_v = nx * c.ux + ny * c.uy + nz * c.uz, nx * c.vx + ny * c.vy + nz * c.vz
            uu += 0.25 * along_u * along_u
            uv += 0.25 * along_u * along_v
            vv += 0.25 * along_v * along_v
    p = jacobian(nx, ny, nz, column + 0.5, row + 0.5, camera)
    metric_uu = p.ux * p.ux + p.uy * p.uy + p.uz * p.uz
    metric_uv = p.ux * p.vx + p.uy * p.vy + p.uz * p.vz
    metric_vv = p.vx * p.vx + p.vy * p.vy + p.vz * p.vz
    area = math.sqrt(max(metric_uu * metric_vv - metric_uv * metric_uv, 0.0))
    return (
        area * (uu + regularisation * metric_uu),
        area * (uv + regularisation * metric_uv),
        area * (vv + regularisation * metric_vv),
    )


@inner(forceinline=True)
def add_pixel(row, column, centre_u, centre_v, normal_map, regularisation, quadric):
    """Add the quadric of a pixel, moved to the centroid of its face, to the quadric (QUADRIC,) of the face."""
    uu, uv, vv = pixel_metric(row, column, normal_map, regularisation)
    du, dv = centre_u - (column + 0.5), centre_v - (row + 0.5)
    along_u, along_v = uu * du + uv * dv, uv * du + vv * dv
    quadric[UU] += uu
    quadric[UV] += uv
    quadric[VV] += vv
    quadric[BU] += along_u
    quadric[BV] += along_v
    quadric[CONSTANT] += along_u * du + along_v * dv


@kernel
def sum_pixels_of_faces(first, last, mesh, normal_map, regularisation, quadrics):
    """Fill the screen quadrics (M, QUADRIC) of faces around their centroids: the mean of their pixels times their area.

    A face that owns no pixel takes the one nearest to its centroid.
    """
    vertices, faces, mask = mesh.vertices, mesh.faces, normal_map.mask
    rows, columns = mask.shape
    for f in range(first, last):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        au, av, bu, bv, cu, cv = (
            vertices[a, 0], vertices[a, 1], vertices[b, 0], vertices[b, 1], vertices[c, 0], vertices[c, 1],
        )  # fmt: skip
        centre_u, centre_v = (au + bu + cu) / 3.0, (av + bv + cv) / 3.0
        own = quadrics[f]
        own[:] = 0.0
        top, middle, bottom = by_height((au, av), (bu, bv), (cu, cv))
        edges, middle_row = face_edges(top, middle, bottom), first_row(middle[1], rows)
        pixels = 0
        for row in range(first_row(top[1], rows), first_row(bottom[1], rows)):
            start, end = row_span(edges, row, middle_row, columns)
            for column in range(start, end):
                if mask[row, column]:
                    add_pixel(row, column, centre_u, centre_v, normal_map, regularisation, own)
                    pixels += 1
        if pixels == 0:
            row, column = nearest_pixel(mask, centre_u, centre_v)
            if row < 0:
                continue
            add_pixel(row, column, centre_u, centre_v, normal_map, regularisation, own)
            pixels = 1
        area = 0.5 * ((bv - av) * (cu - au) - (bu - au) * (cv - av))
        for k in range(QUADRIC):
            own[k] *= area / pixels


@kernel
def sum_faces_of_vertices(first, last, mesh, of_faces, quadrics):
    """Fill the screen quadrics (N, QUADRIC) of vertices: the sums of those of their faces (M, QUADRIC)."""
    vertices, faces = mesh.vertices, mesh.faces
    for vertex in range(first, last):
        own = quadrics[vertex]
        own[:] = 0.0
        start = mesh.corner_of[vertex]
        corner = start
        while True:
            f = corner // 3
            if f < mesh.real_faces:
                a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
                du = vertices[vertex, 0] - (vertices[a, 0] + vertices[b, 0] + vertices[c, 0]) / 3.0
                dv = vertices[vertex, 1] - (vertices[a, 1] + vertices[b, 1] + vertices[c, 1]) / 3.0
                q = of_faces[f]
                along_u, along_v = q[UU] * du + q[UV] * dv, q[UV] * du + q[VV] * dv
                own[UU] += q[UU]
                own[UV] += q[UV]
                own[VV] += q[VV]
                own[BU] += q[BU] + along_u
                own[BV] += q[BV] + along_v
                own[CONSTANT] += q[CONSTANT] + 2.0 * (q[BU] * du + q[BV] * dv) + along_u * du + along_v * dv
            corner = turn(corner, mesh.opposite)
            if corner == start:
                break
