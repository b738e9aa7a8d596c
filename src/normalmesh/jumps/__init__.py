"""Jumps: lines along which the depth of a surface jumps, found before decimation, and where they place its parts."""
