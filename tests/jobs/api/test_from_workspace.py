"""A job from a workspace: with its image, size, environment and volumes, as far as the person may."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.access import Actor
from accounts.credentials import tokens
from jobs.models import Job
from tests.cast import Cast
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


def submit(actor: Actor, workspace: Workspace, **body: Any) -> Any:
    _token, secret = tokens.issue(actor.user, "test", ["read", "jobs"], None, 1)
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    address = f"/api/v1/workspaces/{workspace.pk}/job/"
    return client.post(address, {"command": ["true"]} | body, content_type="application/json")


def test_the_owner_gets_all_of_its_settings(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    made = submit(cast.bob, workspace, env={"EPOCHS": "3"}, secret_env={"KEY": "s3cret"}, retries=1)
    assert made.status_code == 201
    job = Job.objects.get()
    assert (job.name, job.image, job.flavor) == (workspace.name, workspace.image, workspace.flavor)
    assert job.env == {"GREETING": "hello", "EPOCHS": "3"}
    assert job.secret.clear_env() == workspace.secret.clear_env() | {"KEY": "s3cret"}
    assert (job.priority, job.retries) == (-10, 1)


def test_a_variable_of_the_body_takes_the_place_of_the_workspaces(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    assert submit(cast.bob, workspace, secret_env={"GREETING": "hush"}).status_code == 201
    job = Job.objects.get()
    assert "GREETING" not in job.env
    assert job.secret.clear_env()["GREETING"] == "hush"


def test_others_get_image_and_size_alone(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    assert submit(cast.alice, workspace, name="mine").status_code == 201
    job = Job.objects.get()
    assert (job.owner, job.env, job.secret.clear_env()) == (cast.alice.user, {}, {})


def test_a_stranger_does_not_find_it_and_a_viewer_may_not(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    assert submit(cast.carol, workspace).status_code == 404
    assert submit(cast.victor, workspace).status_code == 403
    assert not Job.objects.exists()
