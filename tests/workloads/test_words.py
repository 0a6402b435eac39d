"""Texts about what keeps a run from starting have what their sentences name."""

from __future__ import annotations

from typing import Any

import pytest

from jobs import story as of_jobs
from storage.cluster.reading import read
from storage.models import Kind, Mount, Phase, Volume
from storage.mounts.mounting import in_the_way
from workspaces.state import story as of_workspaces


@pytest.mark.parametrize("story", [of_jobs, of_workspaces])
def test_a_pvc_that_somebody_deletes_is_told_with_all_that_its_sentence_names(story: Any) -> None:
    body: dict[str, Any] = {
        "metadata": {"name": "vol-1", "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}},
    }
    volume = Volume(kind=Kind.HOME, name="home", requested_mib=1024, bound_to="pv-1")
    facts = read(volume, body, None)
    assert facts.phase == Phase.PENDING
    volume.phase, volume.problem, volume.problem_data = facts.phase, facts.problem, facts.data
    blocked = in_the_way([Mount(volume=volume, path="/home", read_only=False)], None)
    assert blocked is not None
    code, data, helps_to_wait = blocked
    assert (code, helps_to_wait) == ("volume_deleted", True)
    assert "vol-1" in story.sentence(code, data)
    assert "pv-1" in story.sentence(code, data)
