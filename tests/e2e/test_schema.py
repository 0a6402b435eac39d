"""The API against its own schema: no request gets a server error or an answer that the schema does not know."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.stack import Stack
from tests.sampling import rare

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(1200)]

# The schema does not know 500, so a 500 fails. It knows 501 for what is not built yet.
CHECKS = "status_code_conformance,content_type_conformance,response_schema_conformance"
EVERYTHING = ("read", "workspaces", "jobs", "volumes")
PEOPLE = {"alice": EVERYTHING, "admin": (*EVERYTHING, "admin")}


@pytest.fixture(scope="module")
def berth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("schema") / "state", BERTH_DEVCLUSTER_PODS="played")
    stack.start()
    name_what_is_there(stack)
    yield stack
    stack.stop()


def name_what_is_there(berth: Stack) -> None:
    """Give the fuzzer names that exist: a running workspace with a lifetime, a job, a tenant, a person in it."""
    body = {
        "tenant": "demo",
        "name": "asked",
        "image": "jupyter",
        "flavor": "cpu-small",
        "max_runtime_minutes": 600,
    }
    alice = berth.client(berth.token("alice", *EVERYTHING))
    status, workspace = alice("POST", "workspaces/", body)
    assert status == 201, workspace
    status, job = alice("POST", "jobs/", body | {"command": ["true"], "completions": 3, "parallelism": 2})
    assert status == 201, job
    names = {"path.id": workspace["id"], "path.slug": "demo", "path.username": "bob"}
    lines = ["[parameters]", *(f'"{name}" = "{value}"' for name, value in names.items())]
    lines += ['"query.follow" = false']  # a log that is followed ends when its container does
    lines += [
        "[[operations]]",
        'include-path-regex = "/jobs/"',
        f'parameters = {{"path.id" = "{job["id"]}"}}',
    ]
    (berth.folder / "schemathesis.toml").write_text("\n".join(lines))


def fuzz(berth: Stack, person: str, phases: str, examples: int) -> None:
    token = berth.token(person, *PEOPLE[person])
    command = [str(Path(sys.executable).with_name("schemathesis"))]
    command += ["--config-file", str(berth.folder / "schemathesis.toml")]
    command += ["run", f"{berth.address}/api/schema/?format=json"]
    command += ["--header", f"Authorization: Bearer {token}", "--checks", CHECKS, "--max-failures", "10"]
    command += ["--phases", phases, "--max-examples", str(examples), "--seed", "1"]
    command += ["--generation-database", "none", "--request-timeout", "120"]
    done = subprocess.run(command, cwd=berth.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.parametrize(
    ("person", "phases", "examples"),
    [("alice", "fuzzing", 5), *(rare(person, "coverage,fuzzing", 150) for person in PEOPLE)],
)
def test_whatever_is_asked_the_answer_is_one_of_the_schema(
    berth: Stack, person: str, phases: str, examples: int
) -> None:
    fuzz(berth, person, phases, examples)
