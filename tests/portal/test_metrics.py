"""What Prometheus reads: counts from rows, and nobody's name."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from accounts.notices.models import Notice
from quotas import admission
from tests.cast import make_cast
from workspaces.launch import LaunchSpec, launch
from workspaces.sizing import SizeAsked

pytestmark = pytest.mark.django_db


def samples(client: Client) -> dict[tuple[str, ...], float]:
    """(metric, label values …) to value."""
    answer = client.get("/metrics")
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.content.decode())
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


def test_it_counts_what_runs_and_what_waits(client: Client) -> None:
    cast = make_cast()
    for number in range(6):
        size = SizeAsked(flavor="a100-1")
        launch(cast.alice, LaunchSpec(tenant="demo", name=f"secret-{number}", image="jupyter", size=size))
    admission.admit(cast.pool.pk)
    read = samples(client)
    assert read["berth_workspaces", "starting"] == 4
    assert read["berth_workspaces", "waiting"] == 2
    assert read["berth_claims", "a100", "waiting"] == 2
    assert read["berth_gpus_held", "a100"] == 4
    assert read["berth_queue_oldest_seconds", "a100"] >= 0
    text = client.get("/metrics").content.decode()
    assert not any(word in text for word in ("alice", "demo", "secret"))


def test_it_counts_mails_that_wait_and_that_were_given_up(client: Client) -> None:
    bob = make_cast().bob.user
    for key, state, due in (
        ("a", "waiting", timezone.now()),
        ("b", "given_up", None),
        ("c", "given_up", None),
    ):
        Notice.objects.create(
            user=bob, key=key, kind="ready", subject_id=bob.pk, in_berth=True, mail=state, mail_due_at=due
        )
    read = samples(client)
    assert (read["berth_mails", "waiting"], read["berth_mails", "given_up"]) == (1, 2)
