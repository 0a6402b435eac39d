"""A post-mortem in a browser: found from the workspace that failed, read, and noted on, in every look."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, expect

from monitoring.models import PostMortem
from tests.cast import Cast
from tests.e2e import looks
from tests.e2e.browsing import signed_in
from tests.shared.post_mortems.rows import make_post_mortem
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Phase

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]


def test_it_is_read_from_the_workspace_that_failed_and_noted_on(
    browser: Browser, address: str, cast: Cast
) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.FAILED, name="train")
    at = timezone.now().isoformat()
    workspace.failure = {"code": "out_of_memory", "data": {}, "at": at, "run": str(workspace.run)}
    workspace.save()
    make_post_mortem(workspace)
    make_post_mortem(workspace, id=uuid4())
    with signed_in(browser, address, cast.bob.user, reduced_motion="reduce") as context:
        page = context.new_page()
        said = looks.complaints(page)
        page.goto(f"/workspaces/{workspace.pk}/")
        page.get_by_role("link", name="Post-mortem: everything").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Post-mortem of train")
        expect(page.locator("[data-verdict=out_of_memory]")).to_contain_text("more memory than allowed")
        expect(page.locator(".post-mortem-log")).to_have_text("loading the whole data set")
        expect(page.get_by_text("Xid 79", exact=False).first).to_be_visible()
        expect(page.locator("[data-missing]")).to_contain_text("not read to its end")
        expect(page.locator("[data-alike]")).to_have_count(1)
        page.get_by_role("textbox", name="Note").fill("The cable was loose.")
        page.get_by_role("button", name="Add the note").click()
        expect(page.locator("[data-note]")).to_contain_text("The cable was loose.")
        looks.quiet_and_readable(page)
        page.goto("/post-mortems/")
        page.get_by_role("textbox", name="Node").fill("gpu-2")
        page.get_by_role("button", name="Show", exact=True).click()
        expect(page.get_by_text("No runs match.")).to_be_visible()
        page.get_by_role("link", name="Show all").click()
        expect(page.locator("[data-record]")).to_have_count(2)
        looks.quiet_and_readable(page)
        assert said == []


def test_a_page_that_is_still_gathered_is_fetched_anew(browser: Browser, address: str, cast: Cast) -> None:
    record = make_post_mortem(make_workspace(cast, cast.bob), due_at=timezone.now(), verdict="")
    with signed_in(browser, address, cast.bob.user) as context:
        page = context.new_page()
        page.goto(f"/post-mortems/{record.pk}/")
        expect(page.get_by_text("More is being gathered.")).to_be_visible()
        page.get_by_role("textbox", name="Note").fill("half a note")
        PostMortem.objects.update(due_at=None, verdict="out_of_memory")
        expect(page.locator("[data-verdict=out_of_memory]")).to_be_visible()
        expect(page.get_by_text("More is being gathered.")).to_be_hidden()
        expect(page.get_by_role("textbox", name="Note")).to_have_value("half a note")
