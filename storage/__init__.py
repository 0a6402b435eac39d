"""Volumes: storage that outlives every run, with its owner, its size, and who may use it."""
