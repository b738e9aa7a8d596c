"""Reading and writing: normal maps and cameras in, meshes out."""
