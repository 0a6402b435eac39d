"""Proof that the main path survives kills and outages at any moment, and load. `make test-slow` prints the results."""
