"""Admin: the catalogue can be edited; workspaces can be found but not written."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.access import Actor
from accounts.models import AuditEntry, Membership, User
from quotas.models import Flavor
from tests.admin_forms import confirm, preview, text_of
from tests.cast import Cast
from tests.shared.workspace_rows import make_workspace
from workloads.models import Image
from workspaces.models import Phase, Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(cast: Cast) -> Client:
    cast.admin.user.is_superuser = True
    cast.admin.user.save()
    client = Client()
    client.force_login(cast.admin.user)
    return client


def test_workspaces_are_found_and_link_to_their_page(cast: Cast, admin: Client) -> None:
    workspace = make_workspace(cast, cast.bob)
    listed = admin.get("/admin/workspaces/workspace/?q=exp")
    assert f"/workspaces/{workspace.pk}/" in listed.content.decode()
    detail = admin.get(f"/admin/workspaces/workspace/{workspace.pk}/change/")
    assert detail.status_code == 200
    assert "s3cret-value" not in detail.content.decode()
    assert "GREETING" not in detail.content.decode()


def test_a_deleted_one_is_found_by_its_phase(cast: Cast, admin: Client) -> None:
    gone = make_workspace(cast, cast.bob, Phase.DELETED, name="gone")
    going = make_workspace(cast, cast.bob, Phase.DELETING, name="going")
    Workspace.objects.filter(pk=gone.pk).update(deleted_at=gone.created_at)
    listed = admin.get("/admin/workspaces/workspace/?phase__exact=deleted").content.decode()
    assert f"/workspaces/{gone.pk}/" in listed and f"/workspaces/{going.pk}/" not in listed


def test_workspaces_are_not_written_here(cast: Cast, admin: Client) -> None:
    workspace = make_workspace(cast, cast.bob)
    assert admin.get("/admin/workspaces/workspace/add/").status_code == 403
    assert (
        admin.post(f"/admin/workspaces/workspace/{workspace.pk}/delete/", {"post": "yes"}).status_code == 403
    )


def test_an_image_is_added_on_record_and_its_use_is_shown(cast: Cast, admin: Client) -> None:
    make_workspace(cast, cast.bob)
    fields = {
        "slug": "torch",
        "name": "PyTorch",
        "reference": "example.org/torch:2",
        "offers_jupyter": "on",
        "uid": 1000,
        "gid": 1000,
        "username": "jovyan",
        "home": "/home/jovyan",
        "shell": "/bin/bash",
        "is_active": "on",
    }
    assert admin.post("/admin/workloads/image/add/", fields).status_code == 302
    assert Image.objects.filter(slug="torch").exists()
    assert AuditEntry.objects.filter(action="image.create").exists()
    listed = admin.get("/admin/workloads/image/").content.decode()
    assert '<td class="field-used_by">1</td>' in listed


WORKSPACES = "/admin/workspaces/workspace/"


def test_workspaces_are_stopped_after_a_look_at_whose_they_are(cast: Cast, admin: Client) -> None:
    running = make_workspace(cast, cast.bob, name="train")
    waiting = make_workspace(cast, cast.carol, Phase.WAITING, name="evaluate")
    stopped = make_workspace(cast, cast.alice, Phase.STOPPED, name="old")
    page = preview(admin, WORKSPACES, "stop", running, waiting, stopped)
    for words in (
        "train of bob in Demo",
        "1 GPU of A100 becomes free.",
        "It is only waiting: it leaves the queue.",
        "No change: It is stopped, or about to be.",
    ):
        assert words in text_of(page)
    assert "2 workspaces stop." in text_of(confirm(admin, WORKSPACES, page))
    assert set(Workspace.objects.filter(desired="stopped").values_list("name", flat=True)) == {
        "train",
        "evaluate",
        "old",
    }


def test_what_a_workspace_uses_is_kept_and_what_nobody_uses_goes(cast: Cast, admin: Client) -> None:
    workspace = make_workspace(cast, cast.bob)
    used = (
        f"/admin/workloads/image/{cast.image.pk}/delete/",
        f"/admin/quotas/flavor/{cast.flavor.pk}/delete/",
    )
    for path in used:
        assert "1 workspace or job uses it." in text_of(admin.post(path, {"post": "yes"}))
    Workspace.objects.filter(pk=workspace.pk).update(deleted_at=workspace.created_at)
    for path in used:
        admin.post(path, {"post": "yes"})
    assert not Flavor.objects.exists()
    assert Image.objects.exists(), "workspaces that are deleted stay on record with theirs"


LISTS = (
    WORKSPACES,
    "/admin/workloads/image/",
    "/admin/quotas/flavor/",
    "/admin/quotas/claim/",
    "/admin/accounts/user/",
    "/admin/",
)


def test_a_list_asks_the_database_as_often_for_forty_rows_as_for_two(cast: Cast, admin: Client) -> None:
    def grow(count: int) -> None:
        for _number in range(count):
            person = User.objects.create(username=f"p{User.objects.count()}")
            Membership.objects.create(user=person, tenant=cast.demo)
            image = Image.objects.create(slug=person.username, name=person.username, reference="x")
            make_workspace(cast, Actor(person), Phase.WAITING, image=image)

    grow(2)
    for path in LISTS:
        admin.get(path)
    few = {path: queries_of(admin, path) for path in LISTS}
    grow(40)
    many = {path: queries_of(admin, path) for path in LISTS}
    assert {path: many[path] for path in LISTS if many[path] > few[path]} == {}


def queries_of(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path).status_code == 200
    return len(captured)
