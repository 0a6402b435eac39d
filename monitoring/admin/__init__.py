"""Admin pages for the state of nodes and GPUs: alerts, drift, troubles, tests, and the tokens of agents."""

from monitoring.admin import alerts, drift, nodes, tokens, troubles, validation

__all__ = ["alerts", "drift", "nodes", "tokens", "troubles", "validation"]
