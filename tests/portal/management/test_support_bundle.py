"""A support bundle has all of its parts, and neither a secret nor the name of a person or of what is theirs."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import models
from django.db.models import Value
from django.db.models.functions import Concat

from accounts.models import Tenant, User
from jobs.models import Job
from portal.management import support
from storage.models import Volume
from tests.portal.isolation import make_stage
from workspaces.models import Workspace

SECRETS = {
    "BERTH_SECRET_KEY": "k" * 60,
    "BERTH_METRICS_TOKEN": "1" * 32,
    "BERTH_EMAIL_URL": "smtp://mailer:hunter2@mail.example:25",
}
# What is somebody's, renamed so that no other word looks like it.
NAMES: tuple[tuple[type[models.Model], str], ...] = (
    (User, "username"),
    (User, "email"),
    (Tenant, "slug"),
    (Tenant, "name"),
    (Workspace, "name"),
    (Job, "name"),
    (Volume, "name"),
)


@pytest.mark.django_db
def test_a_bundle_is_whole_and_tells_nothing_of_people(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_stage()
    for model, field in NAMES:
        model._default_manager.exclude(**{field: ""}).update(**{field: Concat(Value("zq-"), field)})
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("BERTH_LOG_DAYS", "60")
    file = tmp_path / "support.zip"
    call_command("support_bundle", str(file))
    with zipfile.ZipFile(file) as archive:
        told = {name: archive.read(name).decode() for name in archive.namelist()}
    assert told.keys() == support.PARTS.keys()
    assert [name for name, text in told.items() if "not_there" in text] == []
    listed = json.loads(told["settings.json"])
    assert listed["BERTH_LOG_DAYS"] == "60"
    assert {listed[name] for name in SECRETS} == {"set"}
    everything = "\n".join(told.values())
    assert [word for word in (*SECRETS.values(), "hunter2", "zq-") if word in everything] == []


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("BERTH_X", "1", "1"),
        ("BERTH_X", "0.5", "0.5"),
        ("BERTH_X", "true", "true"),
        ("BERTH_X", "", ""),
        ("BERTH_X", "1234567890", "set"),
        ("BERTH_X", "berth.example", "set"),
        ("BERTH_LDAP_BIND_PASSWORD", "12345678", "set"),
        ("BERTH_OIDC_CLIENT_SECRET", "1", "set"),
        ("DATABASE_URL", "1", "set"),
    ],
)
def test_of_a_setting_only_numbers_and_switches_are_shown(name: str, value: str, said: str) -> None:
    assert support.shown(name, value) == said
