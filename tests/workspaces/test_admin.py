"""Admin: the catalogue can be kept; workspaces can be found and not written."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import AuditEntry
from tests.cast import Cast
from tests.workspaces.made import make_workspace
from workspaces.models import Image

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
    assert admin.post("/admin/workspaces/image/add/", fields).status_code == 302
    assert Image.objects.filter(slug="torch").exists()
    assert AuditEntry.objects.filter(action="image.add").exists()
    listed = admin.get("/admin/workspaces/image/").content.decode()
    assert '<td class="field-used_by">1</td>' in listed


def test_who_is_not_staff_does_not_get_in(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.alice.user)
    assert client.get("/admin/workspaces/workspace/").status_code == 302
