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
from workloads.models import Image
from workspaces.models import Phase, Workspace
from workspaces.state import settings

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


@pytest.mark.slow
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


def test_what_a_pod_takes_at_its_start_is_changed_without_showing_a_secret(cast: Cast) -> None:
    Image.objects.create(slug="other", name="Other", reference="example/other:2")
    workspace = make_workspace(cast, cast.bob)
    page = send(
        cast.bob, workspace, image="other", repository="https://me:pass@git.example/a.git", env="A=b=c\n",
        secret_env="MORE=hush-hush", forget=["TOKEN"],
    ).content.decode()  # fmt: skip
    assert "hush-hush" not in page and "s3cret-value" not in page and "me:pass" not in page
    coming = settings.coming(Workspace.objects.get(pk=workspace.pk))
    assert (coming.image, coming.env, coming.secret_env) == ("other", {"A": "b=c"}, {"MORE": "hush-hush"})
    assert coming.whole_address == "https://me:pass@git.example/a.git"
    assert page.count('<option value="other" selected>') == 1 and 'id="image-back"' in page


def test_a_value_of_several_lines_is_not_offered_for_editing_and_stays(cast: Cast) -> None:
    for value in ("one\ntwo=2", "one\ntwo"):
        workspace = make_workspace(
            cast, cast.bob, Phase.STOPPED, env={"CERTIFICATE": value}, name=f"{len(value)}"
        )
        assert send(cast.bob, workspace, name=f"n{len(value)}").status_code == 200
        assert Workspace.objects.get(pk=workspace.pk).env == {"CERTIFICATE": value}


def test_save_and_restart_does_both(cast: Cast) -> None:
    workspace = make_workspace(cast, cast.bob)
    send(cast.bob, workspace, env="NEW=1", restart="true")
    workspace.refresh_from_db()
    assert (workspace.ending, workspace.next_settings) == ("restart", {"env": {"NEW": "1"}})


@pytest.mark.parametrize("phase", [Phase.READY, Phase.FAILED])
def test_the_former_image_is_one_click_back(cast: Cast, phase: Phase) -> None:
    """What runs is not ended by it; what failed starts again with it."""
    other = Image.objects.create(slug="other", name="Other", reference="example/other:2")
    workspace = make_workspace(cast, cast.bob, phase, image=other, previous_image=cast.image.slug)
    browser = Client()
    browser.force_login(cast.bob.user)
    page = browser.get(f"/workspaces/{workspace.pk}/")
    assert (page.context["back_to"], page.context["back_restarts"]) == (cast.image, phase == Phase.FAILED)
    restart = {"restart": "true"} if page.context["back_restarts"] else {}
    browser.post(f"/workspaces/{workspace.pk}/instead/", {"image": cast.image.slug, **restart})
    workspace = Workspace.objects.get(pk=workspace.pk)
    if phase == Phase.READY:
        assert (workspace.phase, workspace.next_settings) == (Phase.READY, {"image": cast.image.slug})
    else:
        assert (workspace.phase, workspace.image) == (Phase.WAITING, cast.image)


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
