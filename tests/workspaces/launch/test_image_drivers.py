"""Drivers that an image needs, and what the nodes of a pool have."""

from __future__ import annotations

import pytest
from django.utils import timezone

from clusters.models import Node
from monitoring.models import AgentState
from tests.cast import Cast
from tests.shared.clients import browser
from workloads.drivers import Drivers, sorted_by
from workloads.models import Image
from workspaces.models import Workspace

SENT = {"tenant": "demo", "image": "jupyter", "flavor": "a100-1", "name": "exp"}


@pytest.mark.parametrize(
    ("least", "found", "sorted_drivers"),
    [
        ("550", ["535.129.03", "550", "550.54.15", ""], Drivers(("535.129.03",), 2, 1)),
        ("550.54.15", ["550.54.14", "550.54.15", "550.90"], Drivers(("550.54.14",), 2)),
        ("9", ["10.1"], Drivers(new=1)),
    ],
)
def test_drivers_are_compared_number_by_number(least: str, found: list[str], sorted_drivers: Drivers) -> None:
    assert sorted_by(least, found) == sorted_drivers


@pytest.mark.slow
@pytest.mark.django_db
def test_an_image_is_refused_where_all_nodes_have_an_older_driver(cast: Cast) -> None:
    Image.objects.update(least_driver="550")
    for node in (nodes := list(Node.objects.all())):
        node.labels["nvidia.com/cuda.driver-version.full"] = "535.1"
        node.save()
    bob = browser(cast.bob)
    assert "needs NVIDIA driver 550 or newer" in bob.post("/launch/answer/", SENT).content.decode()
    assert bob.post("/launch/", SENT).context["form"].errors.keys() == {"image"}
    body = {"tenant": "demo", "name": "train", "image": "jupyter", "flavor": "a100-1", "script": "true"}
    refused = bob.post("/api/v1/jobs/", body, content_type="application/json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "driver_too_old")

    # What an agent reports is newer than a label.
    seen = {"taken_at": timezone.now(), "seen_at": timezone.now(), "driver_version": "550.54.15"}
    AgentState.objects.create(cluster=cast.cluster, node=nodes[0].name, agent="a", **seen)
    assert "data-old-drivers" in bob.post("/launch/answer/", SENT).content.decode()
    assert bob.post("/launch/", SENT).status_code == 302
    assert Workspace.objects.exists()
