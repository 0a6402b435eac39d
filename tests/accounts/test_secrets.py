import pytest
from pytest_django import Settings

from accounts.credentials import secrets


def test_what_is_encrypted_can_be_read_again_and_shows_nothing() -> None:
    kept = secrets.encrypt("jupyter-token-ü")
    assert "jupyter" not in kept
    assert secrets.decrypt(kept) == "jupyter-token-ü"
    assert kept != secrets.encrypt("jupyter-token-ü")


def test_the_key_can_be_changed_without_losing_what_was_written(settings: Settings) -> None:
    kept = secrets.encrypt("old")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another-key", [settings.SECRET_KEY]
    assert secrets.decrypt(kept) == "old"
    assert secrets.decrypt(secrets.encrypt("new")) == "new"


def test_under_a_foreign_key_it_is_unreadable_and_the_error_says_what_to_do(settings: Settings) -> None:
    kept = secrets.encrypt("old")
    settings.SECRET_KEY = "another-key"
    with pytest.raises(secrets.Unreadable, match="BERTH_SECRET_KEY_FALLBACKS"):
        secrets.decrypt(kept)
