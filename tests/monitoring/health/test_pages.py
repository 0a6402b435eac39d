"""Problems of a GPU or node on the pages of the people who use it, and on no others."""

from __future__ import annotations

import pytest
from django.urls import reverse

from accounts.access import Actor
from tests.monitoring.health.ward import Ward
from tests.shared.clients import browser
from workspaces.state import story

pytestmark = pytest.mark.django_db


def page(actor: Actor, address: str) -> str:
    return str(browser(actor).get(address).content.decode())


@pytest.mark.parametrize("drains", [False, True])
def test_it_is_said_with_what_to_do(ward: Ward, drains: bool) -> None:
    alices, carols = ward.on_gpu(1, ward.cast.alice), ward.on_gpu(2, ward.cast.carol)
    if drains:
        alices.conditions = [
            {"code": "node_drains", "data": {"until": "2026-11-21T12:00:00+00:00"}, "level": "warning"}
        ]
        alices.message_code, alices.message_data = "node_drains", alices.conditions[0]["data"]
        alices.save()
    else:
        ward.xid(1, 79)
        alices.refresh_from_db()
    words = story.sentence(alices.message_code, alices.message_data)
    assert words in page(ward.cast.alice, reverse("workspace", args=[alices.pk]))
    assert story.hint(alices.message_code, {}) in page(
        ward.cast.alice, reverse("workspace", args=[alices.pk])
    )
    assert words in page(ward.cast.alice, "/")
    assert words not in page(ward.cast.carol, reverse("workspace", args=[carols.pk]))
