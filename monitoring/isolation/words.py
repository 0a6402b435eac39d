"""A proof's result in words, in the reader's language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy

from clusters.doctor import Level
from monitoring.models import IsolationProof

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

HOLDS: StrOrPromise = _lazy(
    "Proven on %(at)s: a pod of one tenant reached neither another tenant's pod, nor the API server, nor a "
    "metadata service."
)
UNPROVEN: StrOrPromise = _lazy(
    "Look at the events of the namespaces %(namespaces)s, correct what is in the way, and prove it again."
)
# Level, sentence and hint by code.
WORDS: dict[str, tuple[Level, StrOrPromise, StrOrPromise]] = {
    "proof_apart": (Level.OK, HOLDS, ""),
    "proof_node_reached": (
        Level.OK,
        HOLDS,
        _lazy("It did reach ports of nodes: %(nodes)s. Some network plugins always let pods reach nodes."),
    ),
    "proof_without_names": (
        Level.FAIL,
        _lazy(
            "On %(at)s tenants were kept apart, but the policy also kept the pod from the cluster's name server."
        ),
        _lazy(
            "Correct the service networks in the cluster's settings: names are resolved at an address there."
        ),
    ),
    "proof_tenant_reached": (
        Level.FAIL,
        _lazy(
            "The cluster does not enforce the tenants' NetworkPolicy: on %(at)s a pod of one tenant reached the "
            "ports %(ports)s of another tenant's pod."
        ),
        _lazy(
            "Fill in the pod networks in the cluster's settings, and use a network plugin that enforces "
            "NetworkPolicies."
        ),
    ),
    "proof_service_reached": (
        Level.FAIL,
        _lazy("On %(at)s a pod of a tenant reached the API server or a metadata service: %(services)s."),
        _lazy(
            "Add these addresses to those of the API server, or to the networks that workspaces must not reach."
        ),
    ),
    "proof_without_control": (
        Level.WARN,
        _lazy(
            "On %(at)s nothing was proven: the two pods did not reach each other without the policy either, so its "
            "effect cannot be seen."
        ),
        _lazy("Look for policies of the whole cluster, and for faults of its network."),
    ),
    "proof_refused": (
        Level.WARN,
        _lazy("On %(at)s nothing was proven: the cluster refused its objects: %(message)s"),
        UNPROVEN,
    ),
    "proof_too_long": (
        Level.WARN,
        _lazy("On %(at)s nothing was proven: the two pods did not run in time. %(message)s"),
        UNPROVEN,
    ),
}


def level(row: IsolationProof) -> Level:
    return WORDS[row.code][0] if row.code in WORDS else Level.WARN


def facts(row: IsolationProof) -> dict[str, str]:
    reached = row.data.get("reached", {})
    return {
        "at": date_format(localtime(row.ended_at or row.asked_at), "DATETIME_FORMAT"),
        "ports": _(", ").join(reached.get("tenant", [])),
        "services": _(", ").join([*reached.get("api", []), *reached.get("metadata", [])]),
        "nodes": _(", ").join(reached.get("node", [])),
        "message": str(row.data.get("message", "")),
        "namespaces": _(", ").join(row.data.get("namespaces", [])),
    }


def sentence(row: IsolationProof) -> str:
    if row.ended_at is None:
        return _("A proof of isolation is under way.")
    return str(WORDS[row.code][1]) % facts(row)


def hint(row: IsolationProof) -> str:
    return "" if row.ended_at is None else str(WORDS[row.code][2]) % facts(row)


def never() -> str:
    return _("Nothing has proven yet that tenants are kept apart in this cluster.")


def how() -> str:
    return _(
        "Prove it on the cluster's page Doctor, or by manage.py doctor --prove-isolation. It takes minutes."
    )
