from tests.shared.cast_fixtures import api, cast, house, own_rights, played_cluster

__all__ = ["api", "cast", "house", "own_rights", "played_cluster"]
