"""Proof that a cluster keeps tenants apart: two pods in namespaces as tenants have them, tried against each other."""
