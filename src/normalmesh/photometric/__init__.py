"""Photometric stereo and reflectance transformation imaging: normals from photographs."""
