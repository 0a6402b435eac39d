"""The picture of a pipeline and charts of reported values in a browser: in light and dark, on a phone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import TestCase
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect

from devcluster.testing.waiting import until
from jobs.models import Job, Part
from jobs.progress import taking
from jobs.runs.following import After
from quotas import admission
from storage.models import LATEST
from storage.mounts.mounting import MountWish
from tests.cast import Cast
from tests.e2e import looks
from tests.e2e.browsing import signed_in
from tests.shared.datasets import dataset
from tests.shared.driving_jobs import RUNS, submitted
from workloads.logs.readers import Line

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]


def furnish(cast: Cast) -> tuple[Job, Job]:
    data = dataset(cast, "corpus")
    writer = submitted(cast, "prepare", ends=RUNS, writes=data.pk)
    wish = MountWish(volume=data.pk, path="/data", version=LATEST)
    readers = [
        submitted(cast, f"train {number}", ends=RUNS, volumes=[wish], after=[After(writer.pk)])
        for number in range(3)
    ]
    submitted(cast, "report", ends=RUNS, after=[After(one.pk, "end") for one in readers])
    admission.admit(writer.pool_id)
    Part.objects.filter(job=writer).update(phase="running")
    Job.objects.filter(pk=writer.pk).update(phase="running", started_at=timezone.now())
    return writer, readers[0]


def say(job: Job, *texts: str) -> None:
    part = job.parts.get()
    assert part.run is not None
    begun = timezone.now() - timedelta(minutes=10)
    lines = [
        Line("job", job.pk, part.run, 0, 1, begun + timedelta(minutes=at), text)
        for at, text in enumerate(texts)
    ]
    with TestCase.captureOnCommitCallbacks(execute=True):
        taking.on_lines(lines)


def wrong_with(page: Page) -> list[str]:
    wrong = looks.structure(page) + looks.faults(page)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    page.set_viewport_size(looks.SMALLEST)
    return wrong + looks.overflow(page) + looks.faults(page, ["color-contrast"])


def test_a_pipeline_is_a_picture_and_a_list(browser: Browser, address: str, cast: Cast) -> None:
    writer, reader = furnish(cast)
    with signed_in(browser, address, cast.alice.user, reduced_motion="reduce") as context:
        page = context.new_page()
        said = looks.complaints(page)
        page.goto(f"/jobs/{writer.pk}/")
        picture = page.locator("#pipeline")
        expect(picture.locator(".box.is-job")).to_have_count(5)
        expect(picture.locator(".box.is-version")).to_have_count(1)
        picture.get_by_text("As a list").click()
        expect(picture.locator("li").first).to_contain_text("Writes corpus")
        assert wrong_with(page) == []
        picture.locator("svg a").first.click()
        page.wait_for_url(f"**/jobs/{reader.pk}/")
        assert said == []


def test_reported_values_are_a_bar_a_chart_and_a_table(browser: Browser, address: str, cast: Cast) -> None:
    writer, _reader = furnish(cast)
    say(writer, *(f"berth: progress={at / 20} loss={1 / (at + 1):.3f} gain={-at}" for at in range(6)))
    with signed_in(browser, address, cast.alice.user, reduced_motion="reduce") as context:
        page = context.new_page()
        said = looks.complaints(page)
        page.goto(f"/jobs/{writer.pk}/")
        progress = page.locator("#progress")
        expect(progress).to_contain_text("25% done")
        expect(progress).to_contain_text("Done in about")
        expect(progress.locator("canvas")).to_have_count(2)
        expect(progress.get_by_role("row", name="loss")).to_contain_text("0.167")
        loss = progress.locator('[data-series="loss"]')

        def newest_is_told() -> bool:  # news of the job draw the chart anew, without what was chosen
            loss.locator("[data-plot]").press("ArrowRight")
            return "loss 0.167" in loss.locator("[data-moment]").inner_text()

        until(newest_is_told)
        assert wrong_with(page) == []
        assert said == []
