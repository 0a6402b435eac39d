"""The page of all causes, and the link to it from a problem."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from clusters.explain import BY_CODE
from clusters.models import UnknownCause
from portal import guide
from quotas.models import Claim
from tests.cast import Cast, make_cast
from tests.shared.clients import browser
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Phase

pytestmark = pytest.mark.django_db

AT = "2026-01-01T00:00:00Z"


@pytest.fixture
def cast() -> Cast:
    return make_cast()


def test_each_cause_stands_once_with_its_code_as_its_anchor(cast: Cast) -> None:
    page = browser(cast.bob).get("/help/causes/").content.decode()
    assert sorted(re.findall(r'<article class="cause" id="(\w+)"', page)) == sorted(BY_CODE)
    assert len(re.findall(r' id="([\w-]+)"', page)) == len(set(re.findall(r' id="([\w-]+)"', page)))
    assert "%(" not in page
    for theme in re.findall(r'<li><a href="#([\w-]+)">', page):
        assert f'id="{theme}"' in page


@pytest.mark.parametrize(
    ("code", "anchor"), [("image_not_found", "image_not_found"), ("kueue_waits", "cluster_queue_waits")]
)
def test_what_failed_leads_to_its_cause(cast: Cast, code: str, anchor: str) -> None:
    failure = {"code": code, "data": {"image": "lab/tool:1"}, "at": AT}
    workspace = make_workspace(cast, cast.bob, Phase.FAILED, failure=failure)
    page = browser(cast.bob).get(f"/workspaces/{workspace.pk}/").content.decode()
    assert f'href="/help/causes/#{anchor}"' in page


def test_what_the_cluster_sent_back_to_the_queue_leads_to_its_cause(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.WAITING)
    Claim.objects.update(reason_code="volume_on_other_node", reason_data={})
    page = browser(cast.bob).get(f"/workspaces/{workspace.pk}/").content.decode()
    assert 'href="/help/causes/#volume_on_other_node"' in page


@pytest.mark.parametrize("code", ["unknown", "given_up", "no_quota"])
def test_what_the_page_of_causes_does_not_have_leads_nowhere(cast: Cast, code: str) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.FAILED, failure={"code": code, "data": {}, "at": AT})
    page = browser(cast.bob).get(f"/workspaces/{workspace.pk}/").content.decode()
    assert "/help/causes/#" not in page


def test_what_is_wrong_with_one_that_runs_stands_on_its_page(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, message_code="gpu_slowed")
    page = browser(cast.bob).get(f"/workspaces/{workspace.pk}/").content.decode()
    assert "The GPU runs slower than it could" in page
    assert "check the cooling" in page
    assert 'href="/help/causes/#gpu_slowed"' in page


def explained(page: str) -> str:
    return page.partition('role="status"')[2].partition("</section>")[0]


def test_a_pasted_message_is_explained_and_not_kept(cast: Cast) -> None:
    message = "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!"
    page = browser(cast.bob).post("/help/causes/", {"message": message}).content.decode()
    assert 'href="#ssh_host_key_changed"' in explained(page)
    assert "ssh-keygen -R" in explained(page)
    assert not UnknownCause.objects.exists()


@pytest.mark.parametrize("message", ["<script>alert(1)</script> \0 nobody knows", "x" * 100_000])
def test_a_pasted_message_that_nobody_knows_is_told_as_that(cast: Cast, message: str) -> None:
    answer = browser(cast.bob).post("/help/causes/", {"message": message})
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "does not know this message" in explained(page)
    assert "<script>alert" not in page


def test_commands_are_for_admins(cast: Cast) -> None:
    message = {"message": "open /dev/nvidia-uvm: no such file or directory"}
    assert "modprobe nvidia-uvm" not in browser(cast.bob).post("/help/causes/", message).content.decode()
    assert "modprobe nvidia-uvm" in explained(
        browser(cast.admin).post("/help/causes/", message).content.decode()
    )


def test_a_ready_workspace_leads_to_what_is_in_the_way_of_browser_and_ssh(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.READY)
    client = browser(cast.bob)
    assert 'href="/help/causes/#ways"' in client.get(f"/workspaces/{workspace.pk}/").content.decode()
    assert 'id="ways"' in client.get("/help/causes/").content.decode()


@pytest.mark.parametrize("section", guide.PARTS)
def test_each_page_leads_to_a_heading_of_a_guide_that_exists(section: str) -> None:
    name, part = guide.PARTS[section]
    assert not part or f'id="{part}"' in guide.guide(name).html
    assert guide.address_of(section).startswith(reverse("guide", args=[name]))


@pytest.mark.parametrize("name", guide.NAMES)
def test_links_between_guides_lead_to_their_pages(name: str) -> None:
    addresses = re.findall(r'href="([^"]+)"', guide.guide(name).html)
    assert [one for one in addresses if not one.startswith(("#", "http", "/help/guide/"))] == []
    for address in addresses:
        if address.startswith("/help/guide/"):
            other, _hash, part = address.removeprefix("/help/guide/").partition("/#")
            assert not part or f'id="{part}"' in guide.guide(other).html, address
