"""The facet system: each face of a mesh is a plane, and adjacent planes should meet."""
