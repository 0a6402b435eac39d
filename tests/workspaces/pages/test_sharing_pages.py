"""Shares of a GPU on pages and over the API: offered, explained, launched, launched again, changed."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest

from quotas.models import Sharing
from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.workspace_rows import make_workspace
from tests.workspaces.reading import words
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db

SENT = {"tenant": "demo", "image": "jupyter", "name": "exp", "notify": "on"}


@pytest.fixture
def cut(cast: Cast) -> Cast:
    """Cast whose pool's two cards are cut by HAMi; the flavor is a quarter with 1 CPU and 4 GiB."""
    pool, flavor = cast.pool, cast.flavor
    pool.sharing, pool.units_per_gpu = Sharing.HAMI, 100
    pool.save()
    flavor.units, flavor.cpu_millicores, flavor.memory_mib = 25, 1000, 4096
    flavor.save()
    card = {"memory_mib": 81_920, "cores": 100, "slots": 10, "usable": True}
    cast.cluster.nodes.update(devices=[card | {"id": "GPU-a"}, card | {"id": "GPU-b"}])
    return cast


def body_of(page: Any) -> dict[str, Any]:
    found = re.search(r"-d '(.*?)'</pre>", html.unescape(page.content.decode()), re.DOTALL)
    assert found
    return dict(json.loads(found[1]))


def test_a_pool_that_cuts_offers_shares_beside_its_sizes_and_says_what_neighbours_can_do(cut: Cast) -> None:
    page = browser(cut.bob).get("/launch/?fresh")
    text = html.unescape(words(page)).replace("\xa0", " ")
    assert "Isolation: soft cap. A library in each container holds it to its share" in text
    assert "1/10 of a GPU" in text and "1/2 of a GPU" in text and "A whole GPU" in text
    assert "1/4 of a GPU" not in text  # that is the flavor's
    assert "40 GiB GPU memory · 2 CPU · 8 GiB" in text


def test_a_share_is_launched_with_cpu_and_memory_in_proportion(cut: Cast) -> None:
    assert browser(cut.bob).post("/launch/", SENT | {"flavor": "a100/50"}).status_code == 302
    row = Workspace.objects.get()
    assert (row.units, row.cards, row.card_memory_mib, row.card_cores) == (50, 1, 40_960, 50)
    assert (row.cpu_millicores, row.memory_mib, row.flavor) == (2000, 8192, None)


def test_a_share_is_the_same_for_a_script_and_when_it_is_launched_again(cut: Cast) -> None:
    bob = browser(cut.bob)
    body = body_of(bob.post("/launch/answer/", SENT | {"flavor": "a100/50"}))
    assert body.items() >= {"pool": "a100", "gpus": 0.5, "cpu": 2, "memory_mib": 8192}.items()
    assert bob.post("/api/v1/workspaces/", body, content_type="application/json").status_code == 201
    row = Workspace.objects.get()
    again = bob.get(f"/launch/?again={row.pk}").content.decode()
    assert 'value="a100/50" checked' in again


def test_a_share_that_nobody_offered_is_refused(cut: Cast) -> None:
    page = browser(cut.bob).post("/launch/", SENT | {"flavor": "a100/33"})
    assert page.status_code == 422
    assert not Workspace.objects.exists()


def test_gpu_memory_is_a_way_to_say_a_share(cut: Cast) -> None:
    find = {"flavor": "*", "gpus": "", "gpu_memory_gb": "20", "cpu": "2", "memory_gib": "8"}
    assert browser(cut.bob).post("/launch/", SENT | find).status_code == 302
    row = Workspace.objects.get()
    assert (row.cards, row.card_memory_mib, row.units) == (1, 19_073, 24)


def test_the_api_launches_by_gpus_and_gpu_memory_and_shows_both(cut: Cast) -> None:
    bob = browser(cut.bob)
    body = {"tenant": "demo", "name": "exp", "image": "jupyter", "pool": "a100"}
    answer = bob.post(
        "/api/v1/workspaces/",
        body | {"gpus": 0.5, "gpu_memory_mib": 20_480},
        content_type="application/json",
    )
    assert answer.status_code == 201, answer.json()
    assert (answer.json()["gpus"], answer.json()["gpu_memory_mib"]) == (0.5, 20_480)
    same = body_of(bob.get(f"/workspaces/{answer.json()['id']}/settings/"))
    assert (same["gpus"], same["gpu_memory_mib"]) == (0.5, 20_480)


def test_a_change_of_one_figure_leaves_the_other_in_proportion(cut: Cast) -> None:
    row = make_workspace(cut, cut.bob, flavor=None, units=50, cards=1, card_memory_mib=20_480, card_cores=50)
    path = f"/api/v1/workspaces/{row.pk}/"

    def changed(**figures: float) -> dict[str, Any]:
        answer = browser(cut.bob).patch(path, figures, content_type="application/json")
        assert answer.status_code == 200, answer.json()
        row.refresh_from_db()
        kept = row.next_size or {}
        return {name: kept[name] for name in ("units", "cards", "card_memory_mib", "card_cores")}

    assert changed(gpus=0.25) == {"units": 25, "cards": 1, "card_memory_mib": 20_480, "card_cores": 25}
    row.next_size = None
    row.save()
    assert changed(gpu_memory_mib=61_440) == {
        "units": 75, "cards": 1, "card_memory_mib": 61_440, "card_cores": 50
    }  # fmt: skip


def test_the_pools_of_the_api_say_what_can_be_asked_for(cut: Cast) -> None:
    (pool,) = browser(cut.bob).get("/api/v1/pools/").json()["results"]
    assert pool["gives"].startswith("This pool gives any share of a GPU from 1/100")
    assert pool["neighbours"].startswith("A library in each container")


@pytest.mark.parametrize(
    ("sharing", "changes", "offered"),
    [
        (Sharing.TIME_SLICING, {"units_per_gpu": 4}, ["a100/2", "a100/3"]),
        (Sharing.MPS, {"units_per_gpu": 10}, ["a100/2", "a100/5"]),
        (Sharing.MIG, {"units_per_gpu": 7}, []),
        (Sharing.TIME_SLICING, {"units_per_gpu": 4, "one_unit_each": True}, []),
        (Sharing.EXCLUSIVE, {}, []),
    ],
)
def test_only_shares_that_a_run_can_have_are_offered(
    cast: Cast, sharing: Sharing, changes: dict[str, Any], offered: list[str]
) -> None:
    for name, value in ({"sharing": sharing} | changes).items():
        setattr(cast.pool, name, value)
    cast.pool.save()
    page = browser(cast.bob).get("/launch/?fresh").content.decode()
    assert re.findall(r'name="flavor" value="([^"]*/\d+)"', page) == offered


def test_another_share_is_chosen_on_the_settings_page(cut: Cast) -> None:
    row = make_workspace(cut, cut.bob, flavor=None, units=50, cards=1, card_memory_mib=20_480, card_cores=50)
    path, bob = f"/workspaces/{row.pk}/settings/", browser(cut.bob)
    assert "Current size: A100, 0.5 GPU (20 GiB), 4 CPU, 16 GiB" in words(bob.get(path))
    assert (
        bob.post(
            path, {"name": row.name, "image": "jupyter", "flavor": "a100/75", "notify": "on"}
        ).status_code
        == 302
    )
    row.refresh_from_db()
    assert (row.next_size or {}).get("units") == 75
