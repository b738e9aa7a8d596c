"""Normals: the input, its camera and its conventions; what is wrong with it."""
