"""Pages of the admin in a browser: no error in the console, nothing wider than a phone, no serious fault."""

from __future__ import annotations

from typing import Literal

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Page, ViewportSize, expect

from accounts.models import AuditEntry
from clusters.models import Cluster, Node, UnknownCause
from monitoring.models import Finding, Look, Validation
from quotas.models import Budget, Claim, Quota, TenantLimit
from storage.models import Volume
from tests.cast import Cast
from tests.e2e.browsing import signed_in
from tests.e2e.looks import DESK, SMALLEST, complaints, faults, overflow
from tests.monitoring.measured import make_gpus, measure, put_on
from tests.sampling import rare
from tests.shared.job_rows import make_job
from tests.shared.post_mortems.rows import make_post_mortem
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Phase, Workspace

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.django_db(transaction=True),
]

Theme = Literal["light", "dark"]


def some_of_everything(cast: Cast) -> dict[str, object]:
    """Create rows for each list and each kind of problem; return one row to open per model."""
    running = make_workspace(cast, cast.bob, name="train")
    make_workspace(cast, cast.carol, Phase.WAITING, name="evaluate")
    make_workspace(cast, cast.bob, Phase.FAILED, name="try")
    job = make_job(cast, cast.bob)
    Claim.objects.filter(holder_id=running.pk).update(end_unproven_since=timezone.now())
    Quota.objects.filter(tenant=cast.demo).update(nominal_gpus=0)
    limit = TenantLimit.objects.create(tenant=cast.demo, workspaces=1, homes_mib=4096)
    common = {"tenant": cast.demo, "owner": cast.bob.user, "cluster": cast.cluster, "requested_mib": 8192}
    Volume.objects.create(**common, name="old-home", kind="home")
    Cluster.objects.update(unreachable_since=timezone.now(), kubeconfig_path="/absent")
    UnknownCause.objects.create(
        digest="0", source="scheduler", text="0/4 nodes are available: who knows why."
    )
    quota = Quota.objects.filter(tenant=cast.demo).get()
    budget = Budget.objects.create(tenant=cast.demo, gpu_hours=100)
    budget.months.create(month="2026-01-01", added_gpu_hours=20, told_percent=80)
    data = {
        "name": str(quota),
        "fields": ["nominal_gpus"],
        "before": {"nominal_gpus": 4},
        "after": {"nominal_gpus": 0},
    }
    entry = AuditEntry.objects.create(
        action="quota.change", target_kind="quota", target_id=str(quota.pk), tenant=cast.demo, data=data
    )
    Look.objects.create(cluster=cast.cluster, ended_at=timezone.now(), objects_seen=412)
    finding = drifted(cast, running)
    make_gpus(cast, broken=1)
    put_on(running, 0)
    measure(running, every_seconds=60)
    failed = Validation.objects.create(
        cluster=cast.cluster, pool=cast.pool, node="gpu-1", image="lab/vectoradd:1", asked_by=cast.admin.user,
        outcome="failed", code="validation_hangs", ended_at=timezone.now(), log="Copy input data\n" * 40,
    )  # fmt: skip
    return {
        "monitoring/finding": finding.pk, "monitoring/validation": failed.pk,
        "monitoring/postmortem": make_post_mortem(running).pk,
        "clusters/node": Node.objects.get(name="gpu-1").pk,
        "accounts/user": cast.bob.user.pk, "accounts/tenant": cast.demo.pk, "accounts/auditentry": entry.pk,
        "clusters/cluster": cast.cluster.pk, "quotas/pool": cast.pool.pk, "quotas/quota": quota.pk,
        "quotas/budget": budget.pk, "quotas/tenantlimit": limit.pk, "quotas/claim": running.run,
        "workloads/image": cast.image.pk,
        "workspaces/workspace": running.pk, "jobs/job": job.pk,
    }  # fmt: skip


def drifted(cast: Cast, running: Workspace) -> Finding:
    """Create findings with a long name, long fields and a kept volume; return the one with the fields."""
    now = timezone.now()
    image = {
        "path": "spec.containers[name=workspace].image", "by": "kubectl-edit",
        "at": "2026-01-01T00:00:00Z", "value": "registry.example.org/team/of/somebody/image:2",
    }  # fmt: skip
    given = {"cluster": cast.cluster, "namespace": cast.demo.namespace, "workspace": running, "uid": "uid"}
    times = {"first_seen_at": now, "confirmed_at": now}
    Finding.objects.create(
        what="unwanted", kind="PersistentVolumeClaim", name=f"{running.object_name}-home", **given, **times
    )
    return Finding.objects.create(
        what="changed", kind="Pod", name=running.object_name, data={"fields": [image, image]},
        **given, **times,
    )  # fmt: skip


def preview_of_deleted_data(page: Page) -> None:
    page.goto("/admin/monitoring/finding/")
    page.locator("tr", has_text="PersistentVolumeClaim").locator("input.action-select").check()
    page.get_by_label("Action:").select_option("delete_data")
    page.get_by_role("button", name="Go").click()
    page.get_by_role("heading", name="Delete from the cluster, with the data").wait_for()


def preview_of_a_deactivation(page: Page) -> None:
    page.goto("/admin/accounts/user/")
    page.locator("tr", has_text="bob@").locator("input.action-select").check()
    page.get_by_label("Action:").select_option("deactivate")
    page.get_by_role("button", name="Go").click()
    page.get_by_role("heading", name="Deactivate people").wait_for()


def lowering_of_a_limit(page: Page) -> None:
    page.goto("/admin/quotas/tenantlimit/")
    page.locator("input[name=form-0-workspaces]").fill("0")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("heading", name="Lower below what is in use").wait_for()


def connection_of_a_cluster(page: Page) -> None:
    page.goto("/admin/clusters/cluster/")
    page.get_by_role("link", name="Main").click()
    page.get_by_role("button", name="Test the connection", exact=True).click()
    page.get_by_text("1 thing is missing.").wait_for()


def error_beside_its_field(page: Page) -> None:
    page.goto("/admin/quotas/tenantlimit/")
    page.locator("#result_list th a").first.click()
    page.get_by_label("Memory (GiB)").fill("0.3")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Use a whole number of MiB")).to_be_visible()
    expect(page.get_by_label("Memory (GiB)")).to_be_focused()
    expect(page.get_by_label("Memory (GiB)")).to_have_value("0.3")


STEPS = (
    error_beside_its_field,
    preview_of_deleted_data,
    preview_of_a_deactivation,
    lowering_of_a_limit,
    connection_of_a_cluster,
)


@pytest.mark.parametrize(("theme", "viewport"), [("light", DESK), rare("dark", SMALLEST)])
def test_every_page_of_the_admin_is_quiet_accessible_and_fits(
    browser: Browser, address: str, theme: Theme, viewport: ViewportSize, cast: Cast
) -> None:
    rows = some_of_everything(cast)
    paths = [
        "",
        "clusters/node/",
        "quotas/quota/",
        "quotas/claim/",
        "jobs/job/",
        "quotas/budget/",
        "quotas/ledgerentry/",
        "storage/storagespan/",
        "monitoring/finding/",
        "monitoring/validation/",
        "monitoring/validation/begin/",
        f"clusters/cluster/{rows['clusters/cluster']}/doctor/",
        "accounts/user/add/",
        *(f"{name}/{pk}/change/" for name, pk in rows.items()),
        f"quotas/quota/{rows['quotas/quota']}/history/",
        f"workloads/image/{rows['workloads/image']}/delete/",
        f"quotas/quota/{rows['quotas/quota']}/delete/",
    ]
    with signed_in(browser, address, cast.admin.user, color_scheme=theme, viewport=viewport) as context:
        page = context.new_page()
        said = complaints(page)
        wrong: list[str] = []
        for path in paths:
            page.goto(f"/admin/{path}", wait_until="load")
            wrong += [f"{path}: {fault}" for fault in looked_at(page, said)]
        for step in STEPS:
            step(page)
            wrong += [f"{step.__name__}: {fault}" for fault in looked_at(page, said)]
        assert wrong == []


def looked_at(page: Page, said: list[str]) -> list[str]:
    """Return what is wrong. Console messages of the measures themselves do not count."""
    found = [*said, *overflow(page), *faults(page)]
    said.clear()
    return found
