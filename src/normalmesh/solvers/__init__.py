"""Solvers: sparse symmetric systems, direct and iterative."""
