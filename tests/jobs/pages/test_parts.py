"""Tab with the parts of a sweep: columns of parameters and values, in any order, and stopping the rest."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from jobs.models import Job, PartPhase
from jobs.pages import views_parts
from tests.cast import Cast
from tests.shared.job_rows import make_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def sweep(cast: Cast, client: Client) -> Job:
    client.force_login(cast.bob.user)
    return make_job(cast, cast.bob, sweep={"lr": [0.1, 0.01], "seed": [1, 2]}, parallelism=4)


def indices(answer: Any) -> list[int]:
    return [row["part"].index for row in answer.context["rows"]]


def labels(answer: Any) -> list[str]:
    return [str(column.label) for column in answer.context["columns"]]


def test_values_have_columns_once_a_part_has_some(sweep: Job, client: Client) -> None:
    assert labels(client.get(f"/jobs/{sweep.pk}/parts/")) == ["Part", "lr", "seed", "Status", "Attempts"]
    sweep.parts.filter(index=2).update(metrics={"loss": 0.5})
    answer = client.get(f"/jobs/{sweep.pk}/parts/")
    assert labels(answer)[5:] == ["loss"]
    assert [row["metrics"] for row in answer.context["rows"]] == [[None], [None], [0.5], [None]]


def test_the_best_comes_first_and_a_second_press_turns_it_round(sweep: Job, client: Client) -> None:
    for index, loss in enumerate((0.4, 0.1, 0.2)):
        sweep.parts.filter(index=index).update(metrics={"loss": loss})
    answer = client.get(f"/jobs/{sweep.pk}/parts/?sort=metrics.loss")
    assert indices(answer) == [1, 2, 0, 3]
    assert (answer.context["columns"][-1].order, answer.context["columns"][-1].turns_to) == (
        "ascending",
        "-metrics.loss",
    )
    assert client.get(f"/jobs/{sweep.pk}/parts/?sort=owner").status_code == 302


def test_long_tables_have_pages(sweep: Job, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views_parts, "ROWS_PER_PAGE", 3)
    assert indices(client.get(f"/jobs/{sweep.pk}/parts/?sort=-index&page=2")) == [0]


def test_the_rest_is_stopped_after_a_question(sweep: Job, client: Client) -> None:
    asked = client.post(f"/jobs/{sweep.pk}/stop-rest/", {"keep": ["1", "nonsense"]})
    assert asked.status_code == 200
    assert ([part.index for part in asked.context["kept"]], asked.context["ended"]) == ([1], 3)
    assert set(sweep.parts.values_list("phase", flat=True)) == {PartPhase.WAITING}
    assert client.post(f"/jobs/{sweep.pk}/stop-rest/", {"keep": ["1"], "sure": "1"}).status_code == 302
    phases = dict(sweep.parts.values_list("index", "phase"))
    assert phases == {0: "cancelled", 1: "waiting", 2: "cancelled", 3: "cancelled"}


def test_a_parameter_is_shown_as_it_was_written(cast: Cast, client: Client) -> None:
    client.force_login(cast.bob.user)
    job = make_job(
        cast, cast.bob, sweep=[{"a": "<b>", "flag": True}, {"a": 0.30000000000000004, "flag": False}]
    )
    page = client.get(f"/jobs/{job.pk}/parts/").content.decode()
    assert "&lt;b&gt;" in page
    assert ">0.3<" in page
    assert ">true<" in page
