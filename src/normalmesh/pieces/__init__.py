"""Stages of a reconstruction in pieces, each of which sees a window of the map."""
