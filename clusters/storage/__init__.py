"""Storage as a cluster has it: volumes behind PVCs, and what storage classes can do."""
