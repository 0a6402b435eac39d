"""What Berth says about itself, and runs that ended alike, as firings."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.conf import settings
from django.utils import timezone, translation

from accounts.notices.models import Notice
from clusters.models import Watcher
from monitoring.alerts import own_parts, raising, words
from monitoring.alerts.firing import Firing
from monitoring.intake import tokens
from monitoring.models import AgentToken, AlertMember, AlertPass, Severity
from portal.own_parts import silent_parts
from quotas.models import Claim, Pool
from tests.cast import Cast
from tests.monitoring.alerts.stage import Firings
from tests.shared.servers.smtp import MailServer

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def codes(found: Iterable[Firing]) -> list[str]:
    return [one.code for one in found]


def test_berth_is_well(cast: Cast) -> None:
    assert not list(own_parts.firings())


def test_an_unreachable_cluster_fires_after_a_minute(cast: Cast) -> None:
    cast.cluster.unreachable_since = timezone.now() - timedelta(seconds=30)
    cast.cluster.save()
    assert not list(own_parts.firings())
    cast.cluster.unreachable_since = timezone.now() - 2 * MINUTE
    cast.cluster.save()
    (one,) = own_parts.firings()
    assert (one.code, one.severity, one.cluster_id) == (
        "cluster_unreachable",
        Severity.CRITICAL,
        cast.cluster.pk,
    )


def test_one_silent_watch_fires_and_a_silent_watcher_is_another_sources(cast: Cast) -> None:
    late, now = timezone.now() - 5 * MINUTE, timezone.now()
    Watcher.objects.create(cluster=cast.cluster, kind="Pod", seen_at=late)
    assert not list(own_parts.firings())
    Watcher.objects.create(cluster=cast.cluster, kind="Node", seen_at=now)
    (one,) = own_parts.firings()
    assert (one.code, one.data) == ("watch_silent", {"kind": "Pod"})


def test_after_an_outage_of_the_cluster_its_watches_have_as_long_again(cast: Cast, firings: Firings) -> None:
    now = timezone.now()
    for kind, seen_at in (("Pod", now - 5 * MINUTE), ("Node", now)):
        Watcher.objects.create(cluster=cast.cluster, kind=kind, seen_at=seen_at)
    one = firings.add(code="cluster_unreachable", cluster_id=cast.cluster.pk)
    raising.look()
    assert not list(own_parts.firings())
    firings.end(one)
    raising.look()
    assert not list(own_parts.firings())
    AlertMember.objects.update(ended_at=now - 3 * MINUTE)
    assert codes(own_parts.firings()) == ["watch_silent"]


def test_a_queue_over_which_no_pass_came_to_its_end_fires(cast: Cast) -> None:
    claim = Claim.objects.create(
        pool=cast.pool, tenant=cast.demo, user=cast.bob.user, holder_kind="workspace", holder_id=cast.pool.pk,
        state="waiting", units=1, cpu_millicores=1000, memory_mib=1024, place=0,
    )  # fmt: skip
    assert not list(own_parts.firings())
    Claim.objects.filter(pk=claim.pk).update(created_at=timezone.now() - 5 * MINUTE)
    assert codes(own_parts.firings()) == ["queue_stands_still"]
    Pool.objects.update(forecast_at=timezone.now() - MINUTE)
    assert not list(own_parts.firings())


def test_mail_that_waits_or_was_given_up_fires(cast: Cast, mailing: MailServer) -> None:
    of = {
        "user": cast.bob.user,
        "kind": "ready",
        "subject": "x",
        "subject_id": cast.pool.pk,
        "in_berth": True,
    }
    now = timezone.now()
    Notice.objects.create(key="1", mail="waiting", mail_due_at=now, **of)
    Notice.objects.create(key="2", mail="given_up", mail_settled_at=now, **of)
    Notice.objects.filter(mail="waiting").update(at=now - 30 * MINUTE)
    assert codes(own_parts.firings()) == ["mail_stuck", "mail_given_up"]


def test_an_unused_token_of_agents_fires_without_a_mail(cast: Cast) -> None:
    token, _secret = tokens.issue(cast.admin, cast.cluster, "old")
    assert not list(own_parts.firings())
    AgentToken.objects.filter(pk=token.pk).update(created_at=timezone.now() - 31 * DAY)
    (one,) = own_parts.firings()
    assert (one.code, one.severity) == ("agent_token_unused", Severity.INFO)
    AgentToken.objects.update(last_used_at=timezone.now())
    assert not list(own_parts.firings())


def certificate(ends_in: timedelta) -> str:
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")]),
    )
    now = timezone.now()
    built = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    built = built.serial_number(1).not_valid_before(now - 300 * DAY).not_valid_after(now + ends_in)
    pem = built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return base64.b64encode(pem).decode()


def kubeconfig(folder: Path, user: dict[str, Any], cluster: dict[str, Any]) -> str:
    path = folder / "kubeconfig"
    told = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"user": "u", "cluster": "k"}}],
        "users": [{"name": "u", "user": user}],
        "clusters": [{"name": "k", "cluster": cluster}],
    }
    path.write_text(yaml.safe_dump(told))
    return str(path)


def test_certificates_and_tokens_that_end_soon_fire(cast: Cast, tmp_path: Path) -> None:
    ends_at = (timezone.now() + 10 * DAY).timestamp()
    body = base64.urlsafe_b64encode(json.dumps({"exp": ends_at}).encode()).decode().rstrip("=")
    user = {"client-certificate-data": certificate(3 * DAY), "token": f"e30.{body}.x"}
    cluster = {"certificate-authority-data": certificate(900 * DAY)}
    cast.cluster.kubeconfig_path = kubeconfig(tmp_path, user, cluster)
    cast.cluster.save()
    AlertPass.objects.create(pk=1, site_ends_at=timezone.now() + 5 * DAY)
    found = {one.data["what"]: one.severity for one in own_parts.firings()}
    assert found == {
        "client certificate (Main)": Severity.CRITICAL,
        "token (Main)": Severity.WARNING,
        f"TLS ({settings.BASE_URL})": Severity.CRITICAL,
    }


@pytest.mark.parametrize("base_url", ["http://berth.test", "https://127.0.0.1:1"])
def test_a_certificate_that_cannot_be_read_any_more_ends_its_alert(
    cast: Cast, settings: Any, base_url: str
) -> None:
    AlertPass.objects.create(pk=1, site_ends_at=timezone.now() + 5 * DAY)
    assert codes(own_parts.firings()) == ["credential_ends"]
    settings.BASE_URL = base_url
    own_parts.look_at_site()
    assert not list(own_parts.firings())


@pytest.mark.parametrize("text", ["", "[]", "users: 7", ": :", "current-context: c"])
def test_a_broken_kubeconfig_says_nothing(cast: Cast, tmp_path: Path, text: str) -> None:
    (tmp_path / "kubeconfig").write_text(text)
    cast.cluster.kubeconfig_path = str(tmp_path / "kubeconfig")
    cast.cluster.save()
    assert not list(own_parts.firings())


def test_a_silent_part_fires_and_one_that_starts_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "SSH_JUMP_HOST", "")
    well = dict.fromkeys(("worker", "queue", "watcher", "collector"), NOW)
    assert not list(silent_parts(well, NOW, NOW))
    (dead,) = silent_parts(well | {"watcher": NOW - 2 * MINUTE}, NOW - DAY, NOW)
    assert (dead.name, dead.severity, dead.since) == ("watcher", Severity.CRITICAL, NOW - 2 * MINUTE)
    del well["collector"]
    assert not list(silent_parts(well, NOW - MINUTE, NOW))
    assert [one.name for one in silent_parts(well, NOW - 5 * MINUTE, NOW)] == ["collector"]
    assert not list(silent_parts({}, None, NOW))


def test_every_code_of_ours_has_its_words() -> None:
    data = {
        "part": "worker", "minutes": 2, "pool": "a100", "kind": "Pod", "cluster": "Main", "what": "token",
        "date": "2026-12-01", "name": "old", "days": 30, "leaving": 9, "people": 20,
    }  # fmt: skip
    with translation.override("en"):
        for code in words._LINES:
            assert words.sentence(code, data) and words.hint(code, data)
