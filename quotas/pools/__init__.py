"""Pools: which nodes and GPUs are theirs, what room is left there, and how well they are."""
