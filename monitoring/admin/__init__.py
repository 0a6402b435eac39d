"""Where admins see how their clusters, nodes and GPUs are, and what is not as it should be."""

from monitoring.admin import drift, nodes, tokens, troubles, validation

__all__ = ["drift", "nodes", "tokens", "troubles", "validation"]
