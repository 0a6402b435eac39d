"""Admin pages for the state of nodes and GPUs: drift, troubles, post-mortems, tests, and the tokens of agents."""

from monitoring.admin import drift, idle, nodes, post_mortems, tokens, troubles, validation

__all__ = ["drift", "idle", "nodes", "post_mortems", "tokens", "troubles", "validation"]
