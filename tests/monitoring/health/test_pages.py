"""Problems of a GPU or node on pages: of the people who use it and of no others, and of admins."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from clusters.models import Node
from monitoring.models import Trouble
from portal import attention
from tests.admin_forms import confirm, preview, text_of
from tests.monitoring.health.ward import NODE, Ward
from tests.shared.clients import browser
from workspaces.state import story

pytestmark = pytest.mark.django_db

LIST = "/admin/monitoring/trouble/"


@pytest.fixture
def admin(ward: Ward) -> Client:
    return browser(ward.cast.admin)


def test_the_overview_shows_problems_with_their_node(ward: Ward) -> None:
    ward.sample(1, state="lost")
    ward.sample(2, row_remap_pending=True)
    ward.sample(3, state="lost")
    items = [item for item in attention.overview()["items"] if "trouble" in item.address]
    assert [(item.level, NODE in item.text) for item in items] == [("bad", True), ("warn", True)]


def test_the_list_shows_open_problems_and_past_ones_on_request(ward: Ward, admin: Client) -> None:
    ward.xid(1, 79)
    ward.sample(2, row_remap_pending=True)
    ward.sample(2, row_remap_pending=False)
    page = text_of(admin.get(LIST))
    assert "GPU-1" in page and "GPU-2" not in page
    page = text_of(admin.get(f"{LIST}?state=ended"))
    assert "GPU-2" in page and "GPU-1" not in page
    one = Trouble.objects.get(subject="GPU-1")
    assert "Xid 79" in text_of(admin.get(f"{LIST}{one.pk}/change/"))


def test_a_gpu_is_put_into_use_again_from_the_list(ward: Ward, admin: Client) -> None:
    ward.xid(1, 79)
    page = preview(admin, LIST, "trust", Trouble.objects.get())
    assert "1 GPU is in use again." in text_of(confirm(admin, LIST, page))
    assert ward.gpu(1).out_code == ""


def test_the_preview_of_a_drain_says_whom_it_stops(ward: Ward, admin: Client) -> None:
    ward.on_gpu(1, ward.cast.alice)
    page = preview(admin, "/admin/clusters/node/", "drain_60", Node.objects.get(name=NODE))
    assert "The owner of 1 run is notified now, and it stops in 60 min" in text_of(page)
    assert not Trouble.objects.exists()


@pytest.mark.parametrize("drains", [False, True])
def test_a_problem_is_shown_with_its_hint_only_to_the_affected_person(ward: Ward, drains: bool) -> None:
    alices, carols = ward.on_gpu(1, ward.cast.alice), ward.on_gpu(2, ward.cast.carol)
    if drains:
        data = {"until": "2026-11-21T12:00:00+00:00"}
        alices.conditions = [{"code": "node_drains", "data": data, "level": "warning"}]
        alices.message_code, alices.message_data = "node_drains", data
        alices.save()
    else:
        ward.xid(1, 79)
        alices.refresh_from_db()
    sentence = story.sentence(alices.message_code, alices.message_data)
    alice, carol = browser(ward.cast.alice), browser(ward.cast.carol)
    page = text_of(alice.get(reverse("workspace", args=[alices.pk])))
    assert sentence in page and story.hint(alices.message_code, {}) in page
    assert sentence in text_of(alice.get("/"))
    assert sentence not in text_of(carol.get(reverse("workspace", args=[carols.pk])))
