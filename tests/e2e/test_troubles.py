"""What goes wrong in the cluster reaches the open page by itself, in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.e2e.driver import Portal, browser
from tests.e2e.stack import until
from tests.e2e.troubles import TROUBLES, Scene, scene_in

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder: Path = tmp_path_factory.mktemp("troubles")
    with scene_in(folder) as scene:
        yield scene


@pytest.fixture(scope="module")
def context(scene: Scene) -> Iterator[BrowserContext]:
    with browser(scene.stack.address, "troubles") as context:
        Portal(context).sign_in("alice")
        yield context


@pytest.mark.slow
@pytest.mark.parametrize("name", TROUBLES)
def test_the_socket_and_the_page_say_it(scene: Scene, context: BrowserContext, name: str) -> None:
    trouble = TROUBLES[name]
    with trouble.happens(scene) as (workspace, since), scene.heard(workspace) as told:
        page = context.new_page()
        page.goto(f"{scene.stack.address}/workspaces/{workspace['id']}/")
        found = until(f"“{trouble.code}” is told", lambda: told.first(trouble.code, since), 30)
        assert found is not None
        assert trouble.words in found[1]
        expect(page.locator("main")).to_contain_text(trouble.words)
        page.close()
    scene.end(workspace)
