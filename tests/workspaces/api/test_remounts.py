"""Volumes of a workspace that are changed after its launch, by API and page."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from storage.models import Kind, Mount, Volume
from storage.mounts.choosing import offers_for
from storage.mounts.mounting import all_of
from tests.cast import Cast
from tests.shared.clients import ask, script
from tests.shared.datasets import body, dataset
from tests.shared.played_api import PlayedApi
from tests.workspaces.play import Play
from workspaces.models import Workspace
from workspaces.runs import lifecycle

pytestmark = pytest.mark.django_db


def patch(play: Play, *volumes: Any) -> Any:
    return ask(script(play.cast.alice), "PATCH", f"workspaces/{play.id}/", {"volumes": list(volumes)})


def paths(volumes: Any) -> Any:
    return [(one["path"], one["read_only"]) for one in volumes]


@pytest.fixture
def play(cast: Cast) -> Play:
    play = Play(cast, PlayedApi())
    play.begin_ready()
    return play


def mounted(play: Play) -> set[str]:
    return {mount["mountPath"] for mount in play.pod()["spec"]["containers"][0]["volumeMounts"]}


@pytest.mark.slow
def test_a_run_goes_on_and_the_next_start_mounts_the_new_list(play: Play) -> None:
    one, two = dataset(play.cast, "one"), dataset(play.cast, "two")
    shown = patch(play, body(one)).json()
    assert (shown["volumes"], paths(shown["next_volumes"])) == ([], [("/one", True)])
    assert (shown["restart_needed"], shown["pending_restart"]) == (True, ["volumes"])
    assert not {"/one"} & mounted(play)
    shown = patch(play, body(two, read_only=False)).json()
    assert paths(shown["next_volumes"]) == [("/two", False)]

    run = play.row.run
    lifecycle.restart(play.cast.alice, play.row)
    play.until(lambda now: now.phase == "ready" and now.run != run)
    assert {"/two"} < mounted(play)
    shown = ask(script(play.cast.alice), "GET", f"workspaces/{play.id}/").json()
    assert (paths(shown["volumes"]), shown["next_volumes"]) == ([("/two", False)], None)
    assert (shown["restart_needed"], shown["pending_restart"]) == (False, [])
    assert Mount.objects.filter(holder=play.id, volume__kind=Kind.HOME).count() == 1


def test_a_list_that_is_put_back_changes_nothing(play: Play) -> None:
    one = dataset(play.cast, "one")
    assert patch(play).json()["pending_restart"] == []
    assert play.told("remounted_later") == 0
    patch(play, body(one))
    assert patch(play).json()["pending_restart"] == []
    assert (play.told("remounted_later"), play.told("volumes_stay")) == (1, 1)


@pytest.mark.slow
def test_an_eviction_brings_it_back_as_it_was_and_a_stop_takes_the_change_up(play: Play) -> None:
    patch(play, body(dataset(play.cast, "one")))
    run = play.row.run
    play.api.end_pod(play.pod(), "Evicted")
    play.until(lambda now: now.phase == "ready" and now.run != run)
    assert not {"/one"} & mounted(play)
    play.stop()
    assert not Mount.objects.exclude(turn="").exists()
    assert paths(patch(play).json()["volumes"]) == []  # at once, now that it is stopped
    assert play.told("remounted") == 1


@pytest.mark.slow
def test_the_same_volume_moves_to_another_path(play: Play) -> None:
    one = dataset(play.cast, "one")
    patch(play, body(one))
    play.stop()
    lifecycle.start(play.cast.alice, play.row)
    play.until_phase("ready")
    shown = patch(play, {**body(one), "path": "/other"}).json()
    assert (paths(shown["volumes"]), paths(shown["next_volumes"])) == ([("/one", True)], [("/other", True)])
    play.stop()
    assert list(Mount.objects.filter(volume=one).values_list("path", flat=True)) == ["/other"]


def test_what_cannot_be_mounted_is_refused_and_nothing_is_changed(play: Play) -> None:
    bobs = dataset(play.cast, "bobs", owner=play.cast.bob.user)
    foreign = dataset(play.cast, "foreign", tenant=play.cast.second, shared="write")
    home = Volume.objects.get(kind=Kind.HOME)
    for volume in (bobs, foreign, home):
        answer = patch(play, body(volume))
        assert (answer.status_code, list(answer.json()["error"]["fields"])) == (422, ["volumes"])
    assert Mount.objects.count() == 1
    answer = ask(script(play.cast.bob), "PATCH", f"workspaces/{play.id}/", {"volumes": []})
    assert answer.status_code == 403


def test_the_settings_page_ticks_what_is_mounted_and_changes_it(play: Play) -> None:
    one, two = dataset(play.cast, "one"), dataset(play.cast, "two")
    patch(play, body(one, path="/else"))
    browser, path = Client(), f"/workspaces/{play.id}/settings/"
    browser.force_login(play.cast.alice.user)

    def send(*keys: str) -> None:
        form = browser.get(path).context["form"]
        sent = {name: form[name].value() for name in form.fields} | {"volumes": list(keys)}
        answer = browser.post(path, {name: value for name, value in sent.items() if value is not None})
        assert answer.status_code == 302

    form = browser.get(path).context["form"]
    assert form.initial["volumes"] == [f"{one.pk}:r"]
    assert [(row.name, row.path) for row in form.volume_rows] == [("one", "/else"), ("two", "/volumes/two")]
    send(f"{one.pk}:r", f"{two.pk}:w")
    mounts = all_of([play.id])[play.id]
    row = Workspace.objects.get(pk=play.id)
    assert offers_for(play.cast.alice, row.tenant, play.cast.cluster, mounts)[1] == [
        f"{one.pk}:r", f"{two.pk}:w"
    ]  # fmt: skip
    assert {(one.path, one.turn) for one in mounts} == {
        ("~", ""), ("/else", "coming"), ("/volumes/two", "coming")
    }  # fmt: skip
    send()
    assert not Mount.objects.exclude(turn="").exists()
