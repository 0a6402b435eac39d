"""Admin pages for nodes and GPUs: alerts, drift, troubles, post-mortems, tests, idle policies, and tokens of agents."""

from monitoring.admin import alerts, drift, idle, nodes, post_mortems, tokens, troubles, validation

__all__ = ["alerts", "drift", "idle", "nodes", "post_mortems", "tokens", "troubles", "validation"]
