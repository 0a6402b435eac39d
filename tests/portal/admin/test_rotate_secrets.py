"""A change of BERTH_SECRET_KEY: everything is encrypted anew, so that the old key can go."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.core.management import CommandError, call_command

from accounts.credentials import secrets
from accounts.models import IdempotentAnswer
from accounts.sign_on import second_factor
from clusters.models import Installation
from portal.environment import BASE_DIR
from portal.management.commands.rotate_secrets import FIELDS
from tests.cast import Cast
from tests.shared.driving_jobs import submitted
from tests.shared.workspace_rows import make_workspace

pytestmark = pytest.mark.django_db
NEW = "another-key-of-this-installation-" + "0123456789" * 3


def run() -> str:
    out = StringIO()
    call_command("rotate_secrets", stdout=out)
    return out.getvalue()


def test_everything_can_be_read_with_the_new_key_alone(cast: Cast, settings: Any) -> None:
    workspace = make_workspace(cast, cast.bob)
    job = submitted(cast, command=[], script="echo hush", secret_env={"KEY": "hush"})
    before = secrets.decrypt(workspace.secret.jupyter_token)
    Installation.objects.update(ssh_jump_key=secrets.encrypt("jump"))
    IdempotentAnswer.objects.create(
        user=cast.bob.user, key="k", request_digest="d", body=secrets.encrypt("{}")
    )
    factor = Authenticator.objects.create(
        user=cast.bob.user,
        type="totp",
        data={"secret": secrets.encrypt("totp"), second_factor.LAST_COUNTER: 7},
    )
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [settings.SECRET_KEY]
    assert run().startswith("6 rows")
    assert run().startswith("0 rows")
    settings.SECRET_KEY_FALLBACKS = []
    workspace.secret.refresh_from_db()
    factor.refresh_from_db()
    assert secrets.decrypt(workspace.secret.jupyter_token) == before
    assert workspace.secret.clear_env() is not None
    job.secret.refresh_from_db()
    assert (job.secret.clear_env(), job.secret.clear_script()) == ({"KEY": "hush"}, "echo hush")
    assert secrets.decrypt(Installation.objects.get().ssh_jump_key) == "jump"
    assert secrets.decrypt(IdempotentAnswer.objects.get().body) == "{}"
    assert (secrets.decrypt(factor.data["secret"]), factor.data[second_factor.LAST_COUNTER]) == ("totp", 7)


def test_what_no_known_key_opens_is_named_and_the_rest_is_done(cast: Cast, settings: Any) -> None:
    lost, kept = make_workspace(cast, cast.bob), make_workspace(cast, cast.alice)
    old = settings.SECRET_KEY
    settings.SECRET_KEY = "a-key-that-nobody-has-any-more-" + "0123456789" * 3
    lost.secret.host_key = secrets.encrypt("lost")
    lost.secret.save()
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [old]
    with pytest.raises(CommandError, match=str(lost.secret.pk)):
        run()
    settings.SECRET_KEY_FALLBACKS = []
    kept.secret.refresh_from_db()
    assert secrets.decrypt(kept.secret.host_key)


def test_no_module_encrypts_what_the_command_does_not_know() -> None:
    """A change that stores another secret adds its field to the command, and its module here."""
    rooms = {path.parent.name for path in BASE_DIR.glob("*/apps.py")}
    files = (path for room in rooms for path in (BASE_DIR / room).rglob("*.py"))
    found = {str(path.relative_to(BASE_DIR)) for path in files if re.search(r"\bencrypt\(", path.read_text())}
    assert found == {
        "accounts/credentials/secrets.py",
        "accounts/once.py",
        "accounts/rest/idempotency.py",
        "accounts/sign_on/second_factor.py",
        "accounts/sign_on/waiting.py",  # in a session, for minutes
        "clusters/adding/kubeconfigs.py",
        "clusters/site/registries.py",
        "jobs/runs/lifecycle.py",
        "jobs/submit.py",
        "monitoring/alerts/routes.py",
        "portal/management/backups.py",  # a word, to know the key by
        "storage/connections.py",
        "storage/files/inspecting.py",
        "storage/files/sessions.py",
        "workspaces/launch/keys.py",
        "workspaces/ssh_jump/host_key.py",
        "workspaces/state/settings.py",
    }
    assert len(FIELDS) == 10
