"""Isotropic remeshing: the baseline of the paper."""
