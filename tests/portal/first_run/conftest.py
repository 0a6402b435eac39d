from tests.shared.cast_fixtures import played_cluster

__all__ = ["played_cluster"]
