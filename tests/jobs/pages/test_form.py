"""Form of a new job: what it submits, its faults, and where its first values come from."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from jobs.models import Job
from storage import connections
from tests.cast import Cast
from tests.shared.job_rows import make_job
from tests.shared.workspace_rows import make_workspace

pytestmark = pytest.mark.django_db

GOOD = {
    "tenant": "demo", "name": "train", "image": "jupyter", "flavor": "a100-1", "program": "command",
    "command": "python train.py --name 'a b'", "completions": "1", "parallelism": "1", "retries": "3",
    "ttl_hours": "168", "notify": "on",
}  # fmt: skip


def faulty(answer: Any) -> set[str]:
    assert answer.status_code == 422
    return set(answer.context["form"].errors)


def test_a_command_is_split_as_a_shell_does(cast: Cast, bob: Client) -> None:
    answer = bob.post("/jobs/new/", GOOD | {"env": "A=1", "secret_env": "B=s3cret"})
    job = Job.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/jobs/{job.pk}/")
    assert job.command == ["python", "train.py", "--name", "a b"]
    assert (job.env, job.secret.clear_env()) == ({"A": "1"}, {"B": "s3cret"})
    assert (job.retries, job.ttl_hours, job.priority, job.notify) == (3, 168, -10, True)


def test_a_script_comes_with_plain_line_ends(cast: Cast, bob: Client) -> None:
    bob.post("/jobs/new/", GOOD | {"program": "script", "script": "#!/bin/sh\r\necho a\r\n"})
    job = Job.objects.get()
    assert (job.command, job.secret.clear_script()) == ([], "#!/bin/sh\necho a\n")


def test_a_notebook_is_executed(cast: Cast, bob: Client) -> None:
    bob.post("/jobs/new/", GOOD | {"program": "notebook", "notebook": "a.ipynb"})
    assert Job.objects.get().command[-1] == "./a.ipynb"


def test_a_sweep_has_a_part_for_each_point(cast: Cast, bob: Client) -> None:
    bob.post(
        "/jobs/new/", GOOD | {"sweep": "lr = 0.1, 0.01\nseed = 1, 2", "parallelism": "2", "completions": "7"}
    )
    job = Job.objects.get()
    assert (job.sweep, job.completions, job.parallelism) == ({"lr": [0.1, 0.01], "seed": [1, 2]}, 4, 2)


def test_pressed_twice_it_is_submitted_once(cast: Cast, bob: Client) -> None:
    sent = GOOD | {"once": "6f1fbb7b-7a53-4c1c-9a8c-2d0d6b6f5a11"}
    assert bob.post("/jobs/new/", sent)["Location"] == bob.post("/jobs/new/", sent)["Location"]
    assert Job.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"command": ""}, {"command"}),
        ({"command": "echo 'a"}, {"command"}),
        ({"program": "script"}, {"script"}),
        ({"program": "notebook", "notebook": "a.py"}, {"notebook"}),
        ({"name": "-"}, {"name"}),
        ({"sweep": "lr"}, {"sweep"}),
        ({"sweep": "lr = 1\nLR = 2"}, {"sweep"}),
        ({"sweep": "a = 1" + ",1" * 1000}, {"sweep"}),
        ({"completions": "1001"}, {"completions"}),
        ({"retries": "-1", "parallelism": "0"}, {"retries", "parallelism"}),
        ({"final_exit_codes": "0"}, {"final_exit_codes"}),
        ({"final_exit_codes": "2, x"}, {"final_exit_codes"}),
        ({"env": "PATH=x"}, {"env"}),
        ({"flavor": "nothing", "image": "nothing"}, {"flavor", "image"}),
    ],
)
def test_faults_stand_beside_their_fields(
    cast: Cast, bob: Client, changes: dict[str, str], fields: set[str]
) -> None:
    assert faulty(bob.post("/jobs/new/", GOOD | changes)) == fields
    assert not Job.objects.exists()


def test_what_the_other_programs_say_does_not_count(cast: Cast, bob: Client) -> None:
    assert bob.post("/jobs/new/", GOOD | {"script": "x", "notebook": "wrong"}).status_code == 302
    assert Job.objects.get().secret.clear_script() == ""


def test_the_answer_says_when_it_would_start(cast: Cast, bob: Client) -> None:
    answer = bob.post("/jobs/new/answer/", GOOD)
    assert answer.status_code == 200
    assert answer.context["forecast"]["admissible"] is not None
    assert '"command": ["python", "train.py", "--name", "a b"]' in answer.context["curl"]


def test_a_viewer_is_told_that_they_cannot_submit(cast: Cast, client: Client) -> None:
    client.force_login(cast.victor.user)
    assert "form" not in client.get("/jobs/new/").context
    assert client.post("/jobs/new/", GOOD).status_code == 200
    assert not Job.objects.exists()


def test_a_link_fills_it_in(cast: Cast, bob: Client) -> None:
    form = bob.get(
        "/jobs/new/?command=python+a.py&sweep=lr+%3D+1,2&parallelism=2&retries=x&env=TOKEN"
    ).context["form"]
    assert (form["command"].value(), form["sweep"].value()) == ("python a.py", "lr = 1,2")
    assert form["retries"].value() == 3  # what is refused is left out
    assert form["env"].value() == "TOKEN="


def test_a_duplicate_has_all_settings_but_secrets(cast: Cast, bob: Client) -> None:
    job = make_job(
        cast,
        cast.bob,
        command=[],
        script="echo",
        sweep=[{"lr": 1}, {"lr": 2}],
        parallelism=2,
        final_exit_codes=[2, 3],
    )
    page = bob.get(f"/jobs/new/?again={job.pk}")
    form = page.context["form"]
    told = {
        name: form[name].value() for name in ("program", "script", "sweep", "env", "final_exit_codes", "name")
    }
    assert told == {
        "program": "script", "script": "echo", "sweep": "lr\n1\n2", "env": "GREETING=hello",
        "final_exit_codes": "2, 3", "name": "train",
    }  # fmt: skip
    assert "s3cret-value" not in page.content.decode()


def test_others_duplicate_without_the_private_settings(cast: Cast, client: Client) -> None:
    job = make_job(cast, cast.bob, command=["echo", "private"])
    client.force_login(cast.alice.user)
    form = client.get(f"/jobs/new/?again={job.pk}").context["form"]
    assert (form["command"].value(), form["env"].value()) == (None, None)


def test_a_job_from_a_workspace_has_its_image_size_and_environment(cast: Cast, bob: Client) -> None:
    workspace = make_workspace(cast, cast.bob)
    form = bob.get(f"/jobs/new/?workspace={workspace.pk}").context["form"]
    told = [form[name].value() for name in ("image", "flavor", "name", "env")]
    assert told == [workspace.image.slug, "a100-1", workspace.name, "GREETING=hello"]


def test_a_workspace_from_a_job_has_its_image_size_and_environment(cast: Cast, bob: Client) -> None:
    values = {"name": "store", "endpoint": "https://s3.example.org", "bucket": "data"}
    store = connections.create(cast.bob, "demo", values | dict.fromkeys(connections.KEYS, "key"))
    job = make_job(cast, cast.bob, connections=[store.pk])
    form = bob.get(f"/launch/?job={job.pk}").context["form"]
    told = [form[name].value() for name in ("image", "flavor", "env", "connections")]
    assert told == [job.image.slug, "a100-1", "GREETING=hello", [str(store.pk)]]


@pytest.mark.parametrize("path", ["/jobs/new/?again={id}", "/launch/?job={id}", "/jobs/new/?workspace={id}"])
def test_what_is_not_there_or_foreign_is_said_alike(cast: Cast, client: Client, path: str) -> None:
    rows = [make_job(cast, cast.bob).pk, make_workspace(cast, cast.bob).pk, cast.bob.user.pk]
    client.force_login(cast.carol.user)
    pages = [client.get(path.format(id=pk)) for pk in rows]
    assert {len(page.context["notes"]) for page in pages} == {1}
    assert len({str(page.context["notes"]) for page in pages}) == 1
