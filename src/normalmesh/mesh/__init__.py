"""Mesh: triangle meshes on the screen and in space, and which pixels belong to which face."""
