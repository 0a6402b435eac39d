"""Errands: work with a cluster's API that somebody waits for, done by the worker, as web has no rights in a cluster."""
