"""Troubles of the cluster: the person affected reads each in words, nobody else does, and it ends with its fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.scene import Body, Messages, Scene, listening, now, scene_in
from tests.e2e.stack import until
from tests.e2e.troubles import TROUBLES, End, first_message, is_over
from tests.sampling import sampled

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder: Path = tmp_path_factory.mktemp("troubles")
    with scene_in(folder) as scene:
        yield scene


@pytest.fixture(scope="module")
def carol(scene: Scene) -> Iterator[Messages]:
    """Messages that carol's pages receive, from the first trouble to the last."""
    with listening(scene.stack, scene.carol, "workspaces/?") as told:
        yield told


@pytest.mark.parametrize("name", sampled({name: (name,) for name in TROUBLES}, every=5))
def test_its_owner_is_notified_until_it_is_over(
    scene: Scene, carol: Messages, name: str, found: Callable[[str, str], None]
) -> None:
    trouble = TROUBLES[name]
    with trouble.happens(scene) as (workspace, since), scene.heard(workspace) as told:
        seconds, sentence = first_message(told, trouble, since)
        found(f"trouble: {name}", f"{sentence} ({seconds:.1f} s)")
        assert trouble.words in sentence
        page = f"/workspaces/{workspace['id']}/"
        until("her page says it", lambda: trouble.words in scene.alice.text(page))
        if trouble.admin:
            until("the admin reads it", lambda: scene.admin_reads(trouble.admin))
        carols_is_well(scene, carol, workspace)
        if trouble.end == End.NONE:
            scene.tidy()
    if trouble.end != End.NONE:
        is_over(scene, trouble, workspace)


@pytest.fixture(autouse=True)
def tidy(scene: Scene) -> Iterator[None]:
    """Leave only the laboratory for the next trouble, even if the test failed."""
    yield
    scene.tidy()


def carols_is_well(scene: Scene, carol: Messages, alices: Body) -> None:
    hers = now(scene.carol, scene.carols)
    assert (hers["phase"], hers["failure"]) == ("ready", None)
    assert hers["message"] == scene.carols["message"]
    assert alices["id"] not in str(carol.frames)
