"""Admin pages for the state of nodes and GPUs: drift, troubles, tests, and the tokens of agents."""

from monitoring.admin import drift, idle, nodes, tokens, troubles, validation

__all__ = ["drift", "idle", "nodes", "tokens", "troubles", "validation"]
