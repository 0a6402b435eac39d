"""Idle reclaim: find runs in which nothing is done, warn their people, stop them, and report what that would free."""
