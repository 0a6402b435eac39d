"""The namespace of a tenant in a cluster, with its fences: made before the first object of a room above."""
