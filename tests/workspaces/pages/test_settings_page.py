"""Settings page of a workspace: the owner changes it there as through the API."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.access import Actor
from clusters.models import Cluster
from quotas.models import Flavor, Pool
from tests.cast import NETWORKS, Cast
from tests.shared.workspace_rows import make_flavor, make_workspace
from workspaces.models import Phase, Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def two(cast: Cast) -> Flavor:
    return make_flavor(cast, 2)


def send(actor: Actor, workspace: Workspace, **changes: Any) -> Any:
    """Send the form with the page's values and these changes."""
    browser = Client()
    browser.force_login(actor.user)
    path = f"/workspaces/{workspace.pk}/settings/"
    form = browser.get(path).context["form"]
    sent = {name: form[name].value() for name in form.fields} | changes
    return browser.post(path, {name: value for name, value in sent.items() if value}, follow=True)


def test_the_form_as_it_stands_changes_nothing(cast: Cast) -> None:
    sizes: tuple[dict[str, Any], ...] = ({}, {"flavor": None, "memory_mib": 5000})
    for size in sizes:
        workspace = make_workspace(cast, cast.bob, name=f"exp-{len(size)}", max_runtime_minutes=75, **size)
        assert send(cast.bob, workspace).status_code == 200
        before = workspace.last_event
        workspace.refresh_from_db()
        assert (workspace.last_event, workspace.max_runtime_minutes) == (before, 75)


def test_its_own_person_changes_name_size_lifetime_and_notice(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob, Phase.STOPPED)
    page = send(cast.bob, workspace, name="better", flavor="a100-2", max_runtime_minutes="240", notify="")
    assert page.status_code == 200
    assert "Saved." in page.content.decode()
    workspace.refresh_from_db()
    assert (workspace.name, workspace.units) == ("better", 2)
    assert (workspace.max_runtime_minutes, workspace.notify) == (240, False)


def test_a_size_that_waits_for_the_next_start_says_so(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    page = send(cast.bob, workspace, flavor="a100-2").content.decode()
    assert "The new size applies at the next start" in page
    assert page.count('value="a100-2" selected') == 1


def test_what_is_refused_is_said_at_its_field_and_nothing_is_changed(cast: Cast) -> None:
    make_workspace(cast, cast.bob, name="taken")
    workspace = make_workspace(cast, cast.bob)
    for changes, field in (
        ({"name": "taken", "notify": ""}, "name"),
        ({"name": "-"}, "name"),
        ({"flavor": "none"}, "flavor"),
        ({"max_runtime_minutes": "7"}, "max_runtime_minutes"),
    ):
        answer = send(cast.bob, workspace, **changes)
        assert (answer.status_code, list(answer.context["form"].errors)) == (422, [field])
        workspace.refresh_from_db()
        assert (workspace.name, workspace.notify) == ("exp-1", True)


def test_sizes_of_another_cluster_are_not_offered(cast: Cast) -> None:
    far = Cluster.objects.create(slug="far", name="Far", connection=Cluster.Connection.KUBECONFIG, **NETWORKS)
    pool = Pool.objects.create(slug="far-cpu", name="Far CPU", cluster=far, resource_name="")
    Flavor.objects.create(slug="far-small", name="Far", pool=pool, cpu_millicores=1000, memory_mib=1024)
    answer = send(cast.bob, make_workspace(cast, cast.bob), flavor="far-small")
    assert (answer.status_code, list(answer.context["form"].errors)) == (422, ["flavor"])


@pytest.mark.parametrize("who", ["alice", "victor", "admin"])
def test_others_read_it_without_a_form(cast: Cast, who: str) -> None:
    browser = Client()
    browser.force_login(getattr(cast, who).user)
    page = browser.get(f"/workspaces/{make_workspace(cast, cast.bob).pk}/settings/")
    assert (page.status_code, page.context.get("form")) == (200, None)
    assert 'name="flavor"' not in page.content.decode()
