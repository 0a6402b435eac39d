"""Tokens of agents, `bra_<prefix>_<secret>`, made as in accounts/credentials/tokens.py, each for one cluster.

They open the intake only: a stolen token can send false reports about that cluster's GPUs, and read nothing.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.credentials.tokens import USE_WRITTEN_EVERY, digest, is_proven, new_secret, prefix_of
from accounts.errors import Invalid, NotSignedIn
from accounts.models import Scope
from accounts.trail import audit
from clusters.models import Cluster
from monitoring.intake import rows
from monitoring.models import AgentToken
from vitals.clock import is_near_now

KIND = "bra"
BY_PREFIX = "FROM monitoring_agenttoken AS row WHERE prefix = %s"
LONGEST_NAME = 80


@transaction.atomic
def issue(actor: Actor | None, cluster: Cluster, name: str) -> tuple[AgentToken, str]:
    """Return a new token and its secret, which cannot be shown again. Without an actor: by a command on the server."""
    if actor is not None:
        actor.require(Scope.ADMIN)
    if not name.strip() or len(name) > LONGEST_NAME:
        problem = _("Give it a name of 1 to 80 characters.")
        raise Invalid("invalid", problem, _("Change it and try again."), fields={"name": [problem]})
    prefix, secret = new_secret(KIND)
    token = AgentToken.objects.create(
        cluster=cluster,
        name=name,
        prefix=prefix,
        digest=digest(secret),
        created_by=actor.user if actor else None,
    )
    audit.record(actor, "agent_token.create", target=token, data={"cluster": cluster.slug})
    return token, secret


@transaction.atomic
def revoke(actor: Actor, token: AgentToken) -> bool:
    """Revoke the token at once; its row stays for the audit trail. Return False if it was revoked already."""
    actor.require(Scope.ADMIN)
    if not AgentToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now()):
        return False
    audit.record(actor, "agent_token.revoke", target=token, data={"cluster": token.cluster.slug})
    return True


def authenticate(secret: str) -> AgentToken:
    """Return the token of this secret. Raise NotSignedIn if it is unknown or revoked."""
    prefix = prefix_of(secret, KIND)
    token = next(iter(rows.read(AgentToken, BY_PREFIX, (prefix,))), None) if prefix else None
    if (
        not is_proven(secret, token.digest if token else None)
        or token is None
        or token.revoked_at is not None
    ):
        raise refused()
    _note_use(token)
    return token


def refused() -> NotSignedIn:
    return NotSignedIn(
        "token_refused",
        _("This is not an agent token, or it was revoked."),
        _("An admin issues one for this cluster; it goes into the file that the agent reads."),
    )


def _note_use(token: AgentToken) -> None:
    """Update the last use, at most once a minute: many nodes share a token."""
    now = timezone.now()
    if token.last_used_at is None or abs(now - token.last_used_at) > USE_WRITTEN_EVERY:
        stale = Q(last_used_at=None) | ~is_near_now("last_used_at", now, USE_WRITTEN_EVERY)
        AgentToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)
