"""Permission to report, and refusals: in words, final if the report stays wrong, for now otherwise."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from accounts.credentials import tokens as api_tokens
from accounts.errors import NotAllowed, Refusal
from accounts.models import AuditEntry
from clusters.models import Gpu
from monitoring.intake import checks, tokens
from monitoring.models import AgentState, AgentToken
from tests.cast import Cast
from tests.shared.agent_reports import batch, facts, report, sample, send

pytestmark = pytest.mark.django_db


@pytest.fixture
def issued(cast: Cast) -> tuple[AgentToken, str]:
    return tokens.issue(cast.admin, cast.cluster, "nodes")


class TestTokens:
    def test_are_shown_once_and_kept_as_a_digest(self, issued: tuple[AgentToken, str]) -> None:
        token, secret = issued
        assert secret.startswith(f"bra_{token.prefix}_")
        assert secret not in json.dumps(AgentToken.objects.values().get(), default=str)

    def test_say_in_the_trail_who_issued_and_revoked_them(
        self, cast: Cast, issued: tuple[AgentToken, str]
    ) -> None:
        assert tokens.revoke(cast.admin, issued[0])
        assert not tokens.revoke(cast.admin, issued[0])
        lines = AuditEntry.objects.filter(target_id=issued[0].pk).order_by("pk")
        assert [line.action for line in lines] == ["agent_token.create", "agent_token.revoke"]
        assert issued[1] not in json.dumps(list(lines.values()), default=str)

    def test_are_issued_by_admins(self, cast: Cast) -> None:
        with pytest.raises(NotAllowed):
            tokens.issue(cast.alice, cast.cluster, "nodes")

    def test_that_were_revoked_are_refused(self, cast: Cast, issued: tuple[AgentToken, str]) -> None:
        tokens.revoke(cast.admin, issued[0])
        answer = send(issued[1], batch())
        assert (answer.status_code, error_of(answer)["code"]) == (401, "token_refused")
        assert AgentState.objects.count() == 0

    @pytest.mark.parametrize("wrong", ["", "bra_", "bra_x_y", "brt_abc_def", "bra_äää_y", "bra_%00_y"])
    def test_that_are_malformed_or_unknown_are_refused(self, wrong: str) -> None:
        assert send(wrong.encode().decode("latin-1"), batch()).status_code == 401

    def test_of_people_open_nothing_here_and_these_nothing_else(self, cast: Cast, secret: str) -> None:
        _token, of_admin = api_tokens.issue(cast.admin.user, "x", ["admin", "read"])
        assert send(of_admin, batch()).status_code == 401
        elsewhere = Client().get("/api/v1/nodes/", headers={"Authorization": f"Bearer {secret}"})
        assert elsewhere.status_code == 401

    def test_note_their_use_once_a_minute(self, secret: str) -> None:
        def used_at() -> datetime:
            tokens.authenticate(secret)
            return AgentToken.objects.values_list("last_used_at", flat=True).get() or datetime.min

        assert used_at() == used_at()
        wrong_clock = timezone.now() + timedelta(days=1)
        AgentToken.objects.update(last_used_at=wrong_clock)
        assert used_at() < timezone.now() + timedelta(minutes=1)


def error_of(answer: HttpResponse) -> Any:
    return json.loads(answer.content)["error"]


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return a batch with one changed value; `...` removes the field."""
    body = batch(report(1, sample()))
    *way, last = [int(step) if step.isdecimal() else step for step in path.split(".")]
    place: Any = body
    for step in way:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return body


class TestABatch:
    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("node", ...),
            ("node", 5),
            ("node", "a\0b"),
            ("node", "\ud800"),
            ("sent_at", "now"),
            ("sent_at", 1e30),
            ("dropped", 1.5),
            ("reports", {}),
            ("reports.0.sequence", True),
            ("reports.0.sequence", 2**63),
            ("reports.0.gpus.0", "GPU"),
            ("reports.0.gpus.0.uuid", ...),
            ("reports.0.gpus.0.state", "well"),
            ("reports.0.gpus.0.row_remap_failed", 1),
            ("reports.0.gpus.0.failed", ["power"]),
            ("inventory.gpus.0.index", None),
            ("inventory.gpus.0.name", "x" * 5000),
        ],
    )
    def test_that_differs_from_the_schema_is_refused_with_the_place(self, path: str, value: Any) -> None:
        with pytest.raises(Refusal) as refused:
            checks.batch(json.dumps(changed(path, value)).encode())
        assert (refused.value.status, list(refused.value.fields)) == (400, [path])

    @pytest.mark.parametrize(
        "body", [b"", b"{", b"[]", b'"x"', b"\xff", b"[" * 100_000, b'{"version": 1, "sent_at": NaN}']
    )
    def test_that_is_not_a_json_object_is_refused(self, body: bytes) -> None:
        with pytest.raises(Refusal) as refused:
            checks.batch(body)
        assert refused.value.status == 400

    @pytest.mark.parametrize(
        ("path", "value", "code"),
        [("reports.0.gpus.0.state", "well", "invalid"), ("version", 2, "version_unknown")],
    )
    def test_that_is_refused_leaves_nothing(self, secret: str, path: str, value: Any, code: str) -> None:
        answer = send(secret, changed(path, value))
        error = error_of(answer)
        assert (answer.status_code, error["code"], list(error["fields"])) == (400, code, [path])
        assert (Gpu.objects.count(), AgentState.objects.count()) == (0, 0)

    def test_may_have_fields_that_this_berth_does_not_know(self, secret: str) -> None:
        body = changed("reports.0.gpus.0.colour", "green") | {"weather": [1]}
        assert send(secret, body).status_code == 204
        assert "colour" not in Gpu.objects.get().sample

    def test_that_is_too_large_is_refused_before_it_is_read(self, secret: str) -> None:
        answer = send(secret, b"x" * (checks.MOST_BYTES + 1))
        assert (answer.status_code, error_of(answer)["code"]) == (413, "too_large")

    def test_may_hold_nonsense_that_fits_no_column(self, secret: str) -> None:
        told = sample(utilization_percent=4_000_000_000, memory_used_mib=-1, power_watts=1e9)
        body = batch(report(1, told), gpus=[facts(index=-1, memory_mib=2**62, name="n" * 300)])
        assert send(secret, body | {"dropped": 2**62}).status_code == 204
        gpu = Gpu.objects.get()
        assert (gpu.utilization_percent, gpu.memory_mib, len(gpu.name)) == (None, None, 120)

    def test_of_an_unknown_node_is_to_come_again(self, secret: str) -> None:
        """Check that it is not 400: the agent would drop the report."""
        answer = send(secret, batch(node="gpu-9"))
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) > 0

    def test_of_problems_only_is_checked_too(self, secret: str) -> None:
        answer = send(secret, batch(), "health")
        assert (answer.status_code, list(error_of(answer)["fields"])) == (400, ["troubles"])


class TestTheCommand:
    def test_prints_a_token_that_works_as_its_last_line(
        self, cast: Cast, capsys: pytest.CaptureFixture[str]
    ) -> None:
        call_command("issue_agent_token", cast.cluster.slug)
        secret = capsys.readouterr().out.splitlines()[-1]
        assert tokens.authenticate(secret).cluster_id == cast.cluster.pk

    def test_needs_a_cluster_that_is_there(self) -> None:
        with pytest.raises(CommandError):
            call_command("issue_agent_token", "nowhere")
