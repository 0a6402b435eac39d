from typing import Any

import pytest

from portal.origin import is_own


@pytest.fixture(autouse=True)
def site(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["127.0.0.1", "berth.example"]
    settings.CSRF_TRUSTED_ORIGINS = ["https://door.example"]


@pytest.mark.parametrize(
    ("origin", "host", "own"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1:8000", True),
        ("https://berth.example", "berth.example", True),
        ("https://door.example", "10.0.0.7:8000", True),
        ("http://127.0.0.1:9999", "127.0.0.1:8000", False),
        ("http://127.0.0.1", "127.0.0.1:8000", False),
        ("https://evil.example", "berth.example", False),
        ("https://evil.example", "evil.example", False),  # their name that resolves to this server
        ("null", "berth.example", False),
        ("", "", False),
    ],
)
def test_only_our_own_pages_open_websockets(origin: str, host: str, own: bool) -> None:
    assert is_own(origin, host) is own
