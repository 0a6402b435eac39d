from tests.shared.cast_fixtures import cast

__all__ = ["cast"]
