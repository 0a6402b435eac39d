"""Troubles of the cluster: the person affected reads each in words, nobody else does, and it ends with its fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.scene import FAR, Body, Messages, Scene, listening, now, scene_in
from tests.e2e.stack import until
from tests.e2e.troubles import TROUBLES, End, Jupyter, first_message, is_over
from tests.sampling import sampled
from tests.workspaces.ways_in.notebook import Kernel

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


def test_another_image_keeps_the_home_and_the_old_one_is_one_click_back(scene: Scene) -> None:
    """First the new image cannot be pulled, then it can. It comes last: it brings the image to a node."""
    lab = scene.lab()
    page, write = f"/workspaces/{lab['id']}/", "open('kept.bin', 'wb').write(bytes(range(256)) * 4096)"
    with Kernel(Jupyter.of(scene, lab)) as kernel:
        kernel.run(write)
    checksum = of_the_home(scene, lab)
    with scene.fault(image=FAR, error="not-found"):
        restarts_with(scene, lab, "far")
        problem = until("it has a problem", lambda: scene.now(lab)["problem"], 120)
        assert (problem["code"], scene.now(lab)["phase"]) == ("image_not_found", "starting")
        assert problem["gives_up_at"] and "Back to “JupyterLab” and start again" in scene.alice.text(page)
        scene.alice.press(f"{page}instead/", image="jupyter", restart="true")
        has_image(scene, lab, "jupyter")
    assert of_the_home(scene, lab) == checksum
    restarts_with(scene, lab, "far")
    has_image(scene, lab, "far")
    assert of_the_home(scene, lab) == checksum
    scene.alice.press(f"{page}instead/", image="jupyter")
    assert scene.now(lab)["phase"] == "ready"
    scene.api("POST", f"workspaces/{lab['id']}/restart/")
    has_image(scene, lab, "jupyter")
    assert of_the_home(scene, lab) == checksum


def restarts_with(scene: Scene, lab: Body, image: str) -> None:
    status, shown = scene.api("PATCH", f"workspaces/{lab['id']}/", {"image": image})
    assert (status, shown["pending_restart"], shown["phase"]) == (200, ["image"], "ready")
    scene.api("POST", f"workspaces/{lab['id']}/restart/")


def has_image(scene: Scene, lab: Body, image: str) -> None:
    def is_up() -> bool:
        seen = scene.now(lab)
        return (seen["phase"], seen["image"], seen["pending_restart"]) == ("ready", image, [])

    until(f"it is ready with {image}", is_up, 180)


def of_the_home(scene: Scene, lab: Body) -> str:
    """Return the checksum of the file in the workspace's home."""
    with Kernel(Jupyter.of(scene, lab)) as kernel:
        return kernel.run("import hashlib; hashlib.sha256(open('kept.bin', 'rb').read()).hexdigest()")


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
