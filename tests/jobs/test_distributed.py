"""Jobs of several processes over the API: what is accepted, what is refused, and what an answer says of them."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import Scope
from jobs.duplicate import duplicate
from jobs.models import Job
from tests.cast import Cast
from tests.shared.clients import ask, script

pytestmark = pytest.mark.django_db
RANKS = {"nodes": 1, "processes_per_node": 4, "framework": "ranks"}


def submit(cast: Cast, **changes: Any) -> tuple[int, dict[str, Any]]:
    body = {"tenant": "demo", "name": "train", "image": "jupyter", "flavor": "a100-1", "command": ["true"]}
    answer = ask(script(cast.alice, Scope.JOBS), "POST", "jobs/", body | changes)
    return answer.status_code, answer.json()


def test_an_answer_says_how_a_job_is_distributed(cast: Cast) -> None:
    status, answer = submit(cast, distributed=RANKS)
    assert (status, answer["distributed"], answer["checkpoints"]) == (201, RANKS, None)
    assert submit(cast)[1]["distributed"] is None


def test_a_duplicate_is_distributed_as_well(cast: Cast) -> None:
    job = Job.objects.get(pk=submit(cast, distributed=RANKS)[1]["id"])
    again = duplicate(cast.alice, job)
    assert (again.nodes, again.processes_per_node, again.framework) == (1, 4, "ranks")


@pytest.mark.parametrize("name", ["RANK", "MASTER_ADDR", "PET_NNODES"])
@pytest.mark.parametrize("where", ["env", "secret_env"])
def test_what_berth_sets_is_reserved_in_distributed_jobs_alone(cast: Cast, name: str, where: str) -> None:
    status, answer = submit(cast, distributed=RANKS, **{where: {name: "1"}})
    assert (status, list(answer["error"]["fields"])) == (422, [where])
    assert submit(cast, **{where: {name: "1"}})[0] == 201


def test_all_faults_of_an_environment_are_told(cast: Cast) -> None:
    env = {"RANK": "1", "HOME": "/"}
    status, answer = submit(cast, distributed=RANKS, env=env, secret_env={"HOME": "/"})
    texts = answer["error"]["fields"]
    assert (status, list(texts)) == (422, ["env", "secret_env"])
    assert [sum(f"“{name}”" in text for text in texts["env"]) for name in env] == [1, 1]
    assert len(texts["secret_env"]) == 2  # it is reserved, and in both


def test_a_volume_for_checkpoints_has_to_be_mounted_to_write(cast: Cast) -> None:
    volume = "00000000-0000-4000-8000-000000000000"
    for mounts in ([], [{"volume": volume, "path": "/data", "read_only": True}]):
        status, answer = submit(cast, checkpoints={"volume": volume}, volumes=mounts)
        assert (status, list(answer["error"]["fields"])) == (422, ["checkpoints"])
