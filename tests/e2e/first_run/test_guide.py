"""The first-run guide in a browser: an installation with nothing but its first admin, and a kubeconfig to paste."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.driver import Portal, browser
from tests.e2e.looks import faults
from tests.e2e.stack import running

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

EMPTY = """
from accounts.models import Tenant, User
from clusters.models import Cluster
from quotas.models import Pool, Quota
from workloads.models import Image
for model in (Quota, Pool, Tenant, Image, Cluster):
    for row in model.objects.all():
        row.delete()
User.objects.exclude(username="admin").delete()
"""


def test_from_the_first_admin_to_a_ready_workspace(found: Callable[[str, str], None]) -> None:
    with running("first-run") as berth, browser(berth.address, "first-run") as context:
        berth.manage("shell", "-c", EMPTY)
        kubeconfig = (Path(berth.folder) / "kubeconfig").read_text()
        began = time.monotonic()
        portal = Portal(context)
        page = portal.page
        portal.sign_in("admin")
        page.get_by_role("link", name="Set up Berth").click()
        assert faults(page) == []
        page.get_by_role("textbox", name="Kubeconfig").fill(kubeconfig)
        page.get_by_role("button", name="Connect").click()
        page.get_by_label("Run without isolation").check()  # a trial tells of no networks
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_label("A100 80GB", exact=False).first).to_be_checked()
        assert faults(page) == []
        page.get_by_role("button", name="Create these pools").click()
        page.get_by_role("button", name="Create the tenant").click()
        page.get_by_role("button", name="Add the image").click()
        page.get_by_role("button", name="Launch", exact=True).click()
        page.wait_for_url("**/workspaces/*/")
        portal.wait_for("ready")
        found("first run", f"from sign-in to a ready workspace in {time.monotonic() - began:.0f} s")
        page.goto("/")
        expect(page.get_by_role("link", name="Set up Berth")).to_have_count(0)
        assert portal.faults == []
