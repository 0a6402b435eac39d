"""Tests of the token of a trial's simulated agents: made once, valid until somebody revokes it."""

from pathlib import Path

import pytest
from django.utils import timezone

from clusters.models import Cluster
from monitoring.intake import tokens
from monitoring.models import AgentToken
from portal.up import agent_token

pytestmark = pytest.mark.django_db


@pytest.fixture
def trial() -> Cluster:
    return Cluster.objects.create(slug="trial", name="Trial")


def test_it_is_issued_once_and_readable_by_nobody_else(trial: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "agent-token"
    agent_token.provide(trial, file)
    secret = file.read_text()
    agent_token.provide(trial, file)
    assert file.read_text() == secret
    assert file.stat().st_mode & 0o777 == 0o600
    assert tokens.authenticate(secret).cluster == trial
    assert AgentToken.objects.count() == 1


def test_one_that_works_no_more_is_replaced_at_the_next_start(trial: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "agent-token"
    agent_token.provide(trial, file)
    secret = file.read_text()
    AgentToken.objects.update(revoked_at=timezone.now())
    agent_token.provide(trial, file)
    assert file.read_text() != secret
