from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # Django is not set up yet when this file is read
    from accounts.sign_on.configuration import Provider
    from tests.accounts.people import People
    from tests.shared.oidc.university import University


@pytest.fixture
def people(db: None) -> People:
    from tests.accounts.people import make_people

    return make_people()


@pytest.fixture
def from_home() -> Iterator[None]:
    """Requests come from 192.0.2.1."""
    from accounts.trail import audit

    token = audit.client_address.set("192.0.2.1")
    yield
    audit.client_address.reset(token)


@pytest.fixture(scope="session")
def uni(tmp_path_factory: pytest.TempPathFactory) -> Iterator[University]:
    from tests.accounts.sign_on.visiting import CALLBACK
    from tests.shared.oidc.university import university

    with university(tmp_path_factory.mktemp("university"), f"http://testserver{CALLBACK}") as started:
        yield started


@pytest.fixture
def provider(uni: University, settings: Any) -> Provider:
    from accounts.sign_on.configuration import provider_from
    from tests.accounts.sign_on.visiting import GROUPS

    settings.OIDC = provider_from(uni.settings(GROUPS))
    uni.set_clock(0)
    return settings.OIDC
