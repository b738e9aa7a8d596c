"""Stub."""

import numpy as np
from scipy.sparse import csr_matrix

from normalmesh.solvers.cholesky import Cholesky


class PartialCholesky:
    def __init__(self, matrix, coordinates, workspace):
        self.m = matrix
        self.c = Cholesky(matrix, coordinates, workspace)
        self.last = self.c.last
        self.changing = np.arange(matrix.shape[0])

    def freeze(self, active, values, extra, right):
        pass

    def narrow(self, active):
        pass

    def solve(self, values, extra, right, x):
        self.c.factorise(csr_matrix((values, self.m.indices, self.m.indptr), self.m.shape), extra)
        x[:] = self.c.solve(right)

    def finish(self, x):
        pass
