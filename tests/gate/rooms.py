"""Rooms of the project, for the rules about code and documents."""

ROOMS = (
    "accounts",
    "clusters",
    "jobs",
    "monitoring",
    "portal",
    "quotas",
    "storage",
    "vitals",
    "workloads",
    "workspaces",
)
