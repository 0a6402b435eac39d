"""The cast on a cluster with simulated pods, and an admin's API of it."""

from tests.shared.cast_fixtures import api, house

__all__ = ["api", "house"]
