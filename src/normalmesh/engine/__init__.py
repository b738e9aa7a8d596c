"""Tasks: done in this process or by the workers of a cluster, with results that outlive an interruption."""
