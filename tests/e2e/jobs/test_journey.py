"""A person's way with jobs in a browser: a notebook, a retry of what failed, a cancellation, and a sweep's table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.driver import Portal, browser
from tests.e2e.stack import Client, Stack, running, until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

END_MS = 180_000
CELL: dict[str, object] = {
    "cell_type": "code",
    "id": "c0",
    "metadata": {},
    "outputs": [],
    "execution_count": None,
}
NOTEBOOK = {
    "cells": [CELL | {"source": "answer = 6 * 7\nprint(answer)"}],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
FAILS_ONCE = """sh -c 'test "$BERTH_INDEX" != 1 || test -e mended'"""
REPORTS = """sh -c 'echo "berth: loss=$BERTH_PARAM_LR"; sleep 5'"""


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with running("jobs-journey") as found:
        yield found


@pytest.fixture(scope="module")
def alice(stack: Stack) -> Client:
    return stack.client(stack.token("alice", "read", "jobs"))


def test_jobs_are_submitted_followed_retried_cancelled_and_compared(stack: Stack, alice: Client) -> None:
    runs(alice, f"cat > train.ipynb <<'END'\n{json.dumps(NOTEBOOK)}\nEND\n")
    with browser(stack.address, "jobs-journey") as context:
        portal = Portal(context)
        page = portal.page
        portal.sign_in("alice")

        opens_from_navigation(page)
        executes_a_notebook(page, alice)
        retries_what_failed(page, alice)
        cancels(page)
        compares_a_sweep(page)
        looks_on_a_phone(page)
        assert portal.faults == []


def runs(alice: Client, script: str) -> None:
    """Run a script in alice's home and wait until it has succeeded."""
    body = {"tenant": "demo", "name": "helper", "image": "jupyter", "flavor": "cpu-small", "script": script}
    status, made = alice("POST", "jobs/", body | {"retries": 0})
    assert status == 201, made
    until("the helper", lambda: phase(alice, made["id"]) == "succeeded", 120)


def phase(alice: Client, job: str) -> Any:
    return alice("GET", f"jobs/{job}/")[1]["phase"]


def state(page: Page) -> Locator:
    return page.locator(".page-head .status")


def opens_from_navigation(page: Page) -> None:
    page.get_by_role("link", name="Jobs", exact=True).click()
    page.get_by_role("link", name="New job").first.click()
    expect(page.get_by_role("heading", name="New job")).to_be_visible()


def submits(page: Page, name: str, **values: str) -> str:
    """Fill in the form that a link has begun, press Submit, and return the job's id."""
    link = "&".join(f"{field}={quote(value)}" for field, value in values.items())
    page.goto(f"/jobs/new/?tenant=demo&image=jupyter&flavor=cpu-small&{link}")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url("**/jobs/*-*/")
    return urlsplit(page.url).path.split("/")[2]


def executes_a_notebook(page: Page, alice: Client) -> None:
    """Submit by hand, as the form is: choose what runs, the size, and see the verdict."""
    page.get_by_label("Name", exact=True).fill("my notebook")
    page.get_by_role("radio", name="Notebook").check()
    page.get_by_role("textbox", name="Notebook").fill("train.ipynb")
    page.locator("input[name=flavor][value=cpu-small]").check()
    expect(page.locator("#answer [data-verdict]")).to_contain_text("Starts now")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url("**/jobs/*-*/")
    job = urlsplit(page.url).path.split("/")[2]
    expect(state(page)).to_have_text("succeeded", timeout=END_MS)  # without a reload
    expect(page.locator("[data-attempt]")).to_have_count(1)
    runs(alice, f"grep -q 42 train-{job.split('-')[0]}-0.ipynb")


def retries_what_failed(page: Page, alice: Client) -> None:
    submits(page, "three parts", command=FAILS_ONCE, completions="3", parallelism="3", retries="0")
    expect(state(page)).to_have_text("failed", timeout=END_MS)
    expect(page.locator(".note-bad")).to_contain_text("Part 1 ended with exit code 1.")
    runs(alice, "touch mended")
    page.get_by_role("button", name="Retry what failed").click()
    expect(state(page)).to_have_text("succeeded", timeout=END_MS)
    expect(page.locator("[data-attempt='1-2']")).to_be_visible()
    expect(page.locator("[data-attempt='0-2']")).to_have_count(0)


def cancels(page: Page) -> None:
    submits(page, "endless", command="sleep 1000")
    expect(state(page)).to_have_text("running", timeout=END_MS)
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the job").click()
    expect(state(page)).to_have_text("cancelled", timeout=END_MS)
    page.get_by_role("link", name="Activity").click()
    expect(page.locator("[data-events]")).to_contain_text("Cancelled by alice.")


def compares_a_sweep(page: Page) -> None:
    submits(page, "rates", command=REPORTS, sweep="lr = 0.3, 0.1, 0.2", parallelism="3")
    page.get_by_role("link", name="Parts").click()
    parts = page.locator("[data-part]")
    expect(parts).to_have_count(3)
    expect(page.locator(".parts .status-ready")).to_have_count(3, timeout=END_MS)
    page.get_by_role("link", name="loss").click()
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("loss")
    assert [row.get_attribute("data-part") for row in parts.all()] == ["1", "2", "0"]
    with page.expect_download() as started:
        page.get_by_role("link", name="Download as CSV").click()
    lines = started.value.path().read_text().splitlines()
    assert lines[0] == "index,lr,phase,attempts,failures,loss"
    assert lines[1] == "1,0.1,succeeded,1,0,0.1"


def looks_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("link", name="Jobs", exact=True).click()
    expect(page.get_by_role("link", name="rates")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
