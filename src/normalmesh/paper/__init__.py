"""Benches: the tables and figures of the paper, each by one command."""
