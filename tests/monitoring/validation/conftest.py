"""The cast, and a cluster whose pods are played."""

from tests.workspaces.conftest import cast, own_rights, played_cluster

__all__ = ["cast", "own_rights", "played_cluster"]
