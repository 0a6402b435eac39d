"""Pools: their nodes and GPUs, the room left there, and their health."""
