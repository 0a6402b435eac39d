"""Volumes in their cluster: what their PVCs say, and what is made of them."""
