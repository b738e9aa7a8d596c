"""Pictures of normal maps and surfaces."""
