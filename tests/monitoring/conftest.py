"""Cast of the tests, and a cluster with simulated pods."""

from tests.shared.cast_fixtures import cast, own_rights, played_cluster

__all__ = ["cast", "own_rights", "played_cluster"]
