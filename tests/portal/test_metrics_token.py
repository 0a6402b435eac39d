"""Metrics outside a trial: only a Prometheus with the token of the settings reads them."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from portal.safe_start import metrics_token

TOKEN = "a-token-that-only-prometheus-knows"

pytestmark = pytest.mark.django_db


def ask(authorization: str = "") -> tuple[int, str]:
    headers = {"Authorization": authorization} if authorization else {}
    answer = Client().get("/metrics", headers=headers)
    return answer.status_code, "" if answer.status_code == 200 else answer.json()["error"]["code"]


def test_production_without_a_token_answers_nobody_and_names_the_setting(settings: Any) -> None:
    settings.TRIAL = False
    assert ask() == ask("Bearer ") == ask(f"Bearer {TOKEN}") == (403, "metrics_closed")
    assert "BERTH_METRICS_TOKEN" in Client().get("/metrics").json()["error"]["hint"]


@pytest.mark.parametrize("trial", [False, True])
def test_where_a_token_is_set_only_it_reads(settings: Any, trial: bool) -> None:
    settings.TRIAL, settings.METRICS_TOKEN = trial, TOKEN
    for wrong in ("", "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", "Bearer tökén"):
        assert ask(wrong) == (401, "token_refused"), wrong
    assert Client().get("/metrics")["WWW-Authenticate"] == "Bearer"
    assert ask(f"Bearer {TOKEN}") == ask(f"bearer {TOKEN}") == (200, "")


def test_a_trial_without_a_token_is_open(settings: Any) -> None:
    settings.TRIAL = True
    assert ask() == (200, "")


def test_guessing_is_counted_as_of_any_stranger(settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN
    settings.API_RATES = settings.API_RATES | {"stranger": 2}
    assert [ask("Bearer no")[0] for _ in range(3)] == [401, 401, 429]
    assert ask(f"Bearer {TOKEN}") == (200, "")


def test_berth_does_not_start_with_a_short_token() -> None:
    assert metrics_token("") == ""
    assert metrics_token(TOKEN) == TOKEN
    with pytest.raises(ImproperlyConfigured):
        metrics_token("short")
