"""Submit jobs to a running Berth, and wait for what becomes of them."""

from __future__ import annotations

from typing import Any

from tests.e2e.stack import Client, until


def submit(alice: Client, **changes: Any) -> str:
    body = {"tenant": "demo", "name": "train", "image": "jupyter", "flavor": "cpu-small"} | changes
    status, made = alice("POST", "jobs/", {key: value for key, value in body.items() if value is not None})
    assert status == 201, made
    return str(made["id"])


def comes_to(alice: Client, job: str, phase: str, seconds: float = 120) -> dict[str, Any]:
    def now() -> Any:
        return alice("GET", f"jobs/{job}/")[1]

    try:
        until(f"{phase}", lambda: now()["phase"] == phase, seconds)
    except AssertionError as error:
        raise AssertionError(f"{error}: {now()}, {alice.everything(f'jobs/{job}/events/')}") from None
    return dict(now())
