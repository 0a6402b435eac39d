"""Image, environment, secrets and repository that are changed after the launch: now, or with the next start."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest

from accounts.models import AuditEntry
from clusters.models import Node
from tests.cast import Cast
from tests.shared.clients import ask, script
from tests.shared.datasets import body as mount
from tests.shared.datasets import dataset
from tests.shared.played_api import PlayedApi
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.play import Play
from workloads.models import Image
from workspaces.models import Event, Phase, Workspace
from workspaces.runs import lifecycle

pytestmark = pytest.mark.django_db

HUSH = "hush-hush-value"


@pytest.fixture(autouse=True)
def other(cast: Cast) -> Image:
    return Image.objects.create(slug="other", name="Other", reference="example/other:2", home="/home/other")


def patch(actor: Any, workspace: Any, **body: Any) -> Any:
    return ask(script(actor), "PATCH", f"workspaces/{workspace}/", body)


def secret_of(play: Play) -> dict[str, str]:
    data = next(body for body in play.api.of("Secret") if body["metadata"]["name"] == play.row.object_name)
    values = {name: b64decode(value).decode() for name, value in data["data"].items()}
    return {name.removeprefix("env."): value for name, value in values.items()}


def variables(play: Play) -> dict[str, str]:
    env = play.pod()["spec"]["containers"][0]["env"]
    return {one["name"]: one.get("value", "") for one in env}


def restarted(play: Play) -> None:
    run = play.row.run
    lifecycle.restart(play.cast.alice, play.row)
    play.until(lambda now: now.phase == "ready" and now.run != run)


def test_what_runs_keeps_what_it_began_with_and_a_restart_takes_the_change_up(cast: Cast) -> None:
    play = Play(cast, PlayedApi(), env={"OLD": "1"}, secret_env={"KEPT": "a", "GONE": "b"})
    play.begin_ready()
    before, claim = (play.pod(), secret_of(play)), play.claim().units
    shown = patch(
        cast.alice, play.id, image="other", env={"NEW": "2"}, secret_env={"GONE": None, "MORE": HUSH},
        repository="https://me:pass@git.example/course.git",
    ).json()  # fmt: skip
    assert shown["pending_restart"] == ["image", "env", "secret_env", "repository"]
    assert (shown["image"], shown["next_image"], shown["env"]) == ("jupyter", "other", {"OLD": "1"})
    assert (shown["next_env"], shown["next_repository"]) == ({"NEW": "2"}, "https://git.example/course.git")
    play.look()
    assert (play.pod(), secret_of(play)) == before

    restarted(play)
    assert play.claim().units == claim
    assert play.pod()["spec"]["containers"][0]["image"] == "docker.io/example/other:2"
    assert "OLD" not in variables(play) and variables(play)["NEW"] == "2"
    there = secret_of(play)
    assert "GONE" not in there and (there["KEPT"], there["MORE"]) == ("a", HUSH)
    assert there["BERTH_REPOSITORY"] == "https://me:pass@git.example/course.git"
    shown = ask(script(cast.alice), "GET", f"workspaces/{play.id}/").json()
    assert (shown["image"], shown["previous_image"], shown["pending_restart"]) == ("other", "jupyter", [])
    said = str(list(Event.objects.values("code", "data"))) + str(list(AuditEntry.objects.values("data")))
    assert HUSH not in said and "pass" not in said and "NEW" not in said
    assert AuditEntry.objects.filter(action="workspace.change", data__image="other").exists()


def test_the_former_image_is_kept_until_a_run_with_the_new_one_was_ready_and_ended(play: Play) -> None:
    play.begin_ready()
    patch(play.cast.alice, play.id, image="other")
    restarted(play)
    assert play.row.previous_image == "jupyter"
    patch(play.cast.alice, play.id, env={})
    restarted(play)
    assert (play.row.previous_image, play.row.image.slug) == ("", "other")


def test_a_change_that_is_taken_back_changes_nothing(play: Play) -> None:
    play.begin_ready()
    body = {"image": "other", "secret_env": {"A": "b"}, "repository": "https://git.example/a.git"}
    assert patch(play.cast.alice, play.id, **body).json()["pending_restart"] == [*body]
    shown = patch(play.cast.alice, play.id, image="jupyter", secret_env={"A": None}, repository="").json()
    assert (shown["pending_restart"], play.row.secret.next_env) == ([], "")
    assert (play.told("image_stays"), play.told("settings_stay"), play.told("image_changed")) == (1, 1, 0)


def test_an_eviction_brings_it_back_as_it_was_and_a_stop_takes_the_change_up(play: Play) -> None:
    row = play.begin_ready()
    patch(play.cast.alice, play.id, image="other")
    play.api.end_pod(play.pod(), "Evicted")
    play.until(lambda now: now.phase == "ready" and now.run != row.run)
    assert play.row.image.slug == "jupyter"
    play.stop()
    assert (play.row.image.slug, play.row.previous_image, play.row.next_settings) == ("other", "jupyter", {})


@pytest.mark.parametrize("phase", [Phase.STOPPED, Phase.FAILED, Phase.WAITING])
def test_what_has_no_run_gets_it_at_once(cast: Cast, phase: Phase) -> None:
    row = make_workspace(cast, cast.bob, phase)
    shown = patch(cast.bob, row.pk, image="other", env={"A": "b"}, secret_env={"TOKEN": "new"}).json()
    assert (shown["image"], shown["env"], shown["pending_restart"]) == ("other", {"A": "b"}, [])
    assert Workspace.objects.get(pk=row.pk).secret.clear_env() == {"TOKEN": "new"}


def test_it_is_refused_by_the_rules_of_a_launch_and_nothing_changes(cast: Cast) -> None:
    Image.objects.create(slug="gone", name="Gone", reference="example/gone:1", is_active=False)
    row = make_workspace(cast, cast.alice)
    assert patch(cast.alice, row.pk, volumes=[mount(dataset(cast, "one"))]).status_code == 200
    Image.objects.create(slug="there", name="There", reference="example/there:1", home="/one/home")
    for body, field in (
        ({"image": "none"}, "image"), ({"image": "gone"}, "image"), ({"image": "there"}, "image"),
        ({"env": {"PATH": "x"}}, "env"), ({"env": {"TOKEN": "x"}}, "secret_env"),
        ({"secret_env": {"BERTH_REPOSITORY": None}}, "secret_env"), ({"secret_env": {"A": "x" * 70_000}}, "secret_env"),
        ({"repository": "file:///etc"}, "repository"),
    ):  # fmt: skip
        answer = patch(cast.alice, row.pk, name="changed", **body)
        assert (answer.status_code, list(answer.json()["error"]["fields"])) == (422, [field]), body
    row.refresh_from_db()
    assert (row.name, row.next_settings, row.secret.next_env) == ("exp-1", {}, "")
    moved = patch(cast.alice, row.pk, env={"TOKEN": "x"}, secret_env={"TOKEN": None})
    assert moved.status_code == 200


def test_an_image_that_no_driver_of_its_pool_can_run_is_refused_as_at_launch(cast: Cast) -> None:
    Image.objects.filter(slug="other").update(least_driver="550")
    for node in Node.objects.all():
        node.labels["nvidia.com/cuda.driver-version.full"] = "535.1"
        node.save()
    row = make_workspace(cast, cast.bob)
    answer = patch(cast.bob, row.pk, image="other")
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "driver_too_old")
    assert Workspace.objects.get(pk=row.pk).next_settings == {}


def test_the_address_as_it_is_shown_keeps_its_credentials(cast: Cast) -> None:
    row = make_workspace(cast, cast.bob, Phase.STOPPED)
    patch(cast.bob, row.pk, repository="https://me:pass@git.example/a.git")
    patch(cast.bob, row.pk, repository="https://git.example/a.git")
    row = Workspace.objects.get(pk=row.pk)
    assert row.secret.clear_env()["BERTH_REPOSITORY"] == "https://me:pass@git.example/a.git"
    patch(cast.bob, row.pk, repository="https://git.example/b.git")
    assert "BERTH_REPOSITORY" not in Workspace.objects.get(pk=row.pk).secret.clear_env()


def test_others_do_not_read_what_waits(cast: Cast) -> None:
    row = make_workspace(cast, cast.bob)
    patch(cast.bob, row.pk, env={"NEW": "2"}, repository="https://git.example/course.git")
    shown = ask(script(cast.alice), "GET", f"workspaces/{row.pk}/").json()
    assert (shown["next_env"], shown["next_repository"]) == (None, None)
    assert shown["pending_restart"] == ["env", "repository"]
    assert patch(cast.alice, row.pk, image="other").status_code == 403
