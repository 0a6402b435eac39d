"""Estimates of launches with volumes: who has them, and the nodes that can mount them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from clusters.models import Node
from storage.models import Access, Kind, Volume
from storage.mounts.mounting import MountWish
from tests.cast import Cast
from tests.shared.clients import ask, script
from tests.shared.datasets import body, dataset
from tests.shared.played_api import PlayedApi
from tests.workspaces.play import Play
from workspaces.runs import lifecycle
from workspaces.runs.changes import Change, change

pytestmark = pytest.mark.django_db
HOSTNAME = "kubernetes.io/hostname"


def estimate(cast: Cast, *volumes: Any, **more: Any) -> Any:
    wanted = {"tenant": "demo", "name": "x", "image": "jupyter", "flavor": "a100-1", "volumes": list(volumes)}
    return ask(script(cast.alice), "POST", "estimate/", wanted | more)


def reason(answer: Any) -> tuple[bool, list[str]]:
    assert answer.status_code == 200, answer.content
    found = answer.json()
    return found["starts_now"], [one["code"] for one in found["reasons"]]


def written(cast: Cast, volume: Volume) -> Play:
    """Return a workspace that is ready and writes to the volume."""
    play = Play(cast, PlayedApi(), name="writer")
    wish = MountWish(volume=volume.pk, path="/data", read_only=False)
    change(cast.alice, play.row, Change(volumes=[wish]))
    play.begin_ready()
    return play


def at(node: str) -> dict[str, Any]:
    return {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}]
    }


def test_a_writer_is_in_the_way_until_it_ended(cast: Cast) -> None:
    volume = dataset(cast, "data")
    play = written(cast, volume)
    assert reason(estimate(cast)) == (True, [])
    answer = estimate(cast, body(volume))
    assert reason(answer) == (False, ["volume_in_use"])
    assert "writer" in answer.json()["reasons"][0]["message"]
    assert answer.json()["alternatives"] == []  # no other size helps
    play.stop()
    assert reason(estimate(cast, body(volume, read_only=False))) == (True, [])


def test_a_home_that_one_run_at_a_time_can_mount_is_in_the_way(cast: Cast) -> None:
    play = Play(cast, PlayedApi())
    play.begin_ready()
    Volume.objects.filter(kind=Kind.HOME).update(access=Access.NODE)
    assert reason(estimate(cast)) == (False, ["volume_in_use"])
    Volume.objects.filter(kind=Kind.HOME).update(access=Access.MANY)
    assert reason(estimate(cast)) == (True, [])
    lifecycle.stop(cast.alice, play.row)


def test_the_node_of_a_volume_is_followed(cast: Cast) -> None:
    for node in Node.objects.all():
        Node.objects.filter(pk=node.pk).update(labels={**node.labels, HOSTNAME: node.name})
    first, *_others = Node.objects.order_by("name")
    volume = dataset(cast, "data", kind=Kind.DISK, affinity=at(first.name), access=Access.NODE)
    assert reason(estimate(cast, body(volume))) == (True, [])
    Node.objects.filter(pk=first.pk).update(ready=False)
    assert reason(estimate(cast)) == (True, [])
    starts, codes = reason(estimate(cast, body(volume)))
    assert (starts, codes[0].startswith("volume_")) == (False, True)


def test_what_the_launch_would_refuse_is_refused(cast: Cast) -> None:
    bobs = dataset(cast, "bobs", owner=cast.bob.user)
    answer = estimate(cast, body(bobs))
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (422, ["volumes"])


def test_the_launch_page_says_who_is_in_the_way(cast: Cast) -> None:
    volume = dataset(cast, "data")
    written(cast, volume)
    browser = Client()
    browser.force_login(cast.alice.user)
    sent = {"tenant": "demo", "image": "jupyter", "flavor": "a100-1", "name": "x"}
    for ticked, starts in (([], True), ([f"{volume.pk}:r"], False)):
        answer = browser.post("/launch/answer/", sent | {"volumes": ticked})
        assert answer.context["forecast"]["starts_now"] is starts
