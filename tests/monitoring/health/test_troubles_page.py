"""Problems for admins: first in the overview, all in the list, and a GPU put into use again."""

from __future__ import annotations

import pytest
from django.test import Client

from clusters.models import Node
from monitoring.models import Trouble
from portal import attention
from tests.admin_forms import confirm, preview, text_of
from tests.monitoring.health.ward import NODE, Ward
from tests.shared.clients import browser

pytestmark = pytest.mark.django_db

LIST = "/admin/monitoring/trouble/"


@pytest.fixture
def admin(ward: Ward) -> Client:
    return browser(ward.cast.admin)


def test_the_overview_says_what_is_wrong_and_where(ward: Ward) -> None:
    ward.sample(1, state="lost")
    ward.sample(2, row_remap_pending=True)
    ward.sample(3, state="lost")
    items = [item for item in attention.overview()["items"] if "trouble" in item.address]
    assert [(item.level, NODE in item.text) for item in items] == [("bad", True), ("warn", True)]


def test_the_list_shows_what_is_open_and_on_request_what_is_over(ward: Ward, admin: Client) -> None:
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


def test_a_drain_says_first_whom_it_stops(ward: Ward, admin: Client) -> None:
    ward.on_gpu(1, ward.cast.alice)
    page = preview(admin, "/admin/clusters/node/", "drain_60", Node.objects.get(name=NODE))
    assert "The owner of 1 workspace is notified now, and it stops in 60 min" in text_of(page)
    assert not Trouble.objects.exists()
