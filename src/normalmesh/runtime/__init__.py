"""Runtime: how kernels are compiled, kept and run on threads; memory; progress."""
