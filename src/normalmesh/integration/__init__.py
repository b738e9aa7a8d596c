"""Integration: depths of the vertices of a mesh, or of pixels, from normals."""
