"""Errands: who asks waits for the worker's answer, which goes through a row.

The pods of web have no account in a cluster. What a page or a command there needs of a cluster's API is an errand: one
of the functions that rooms register in their `apps.py`, by name, with JSON in and JSON out. In every other part, which
has an account of its own, an errand is a plain call.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from accounts.errors import Refusal
from clusters import errors
from clusters.errands import enqueue
from clusters.models import Errand

log = logging.getLogger(__name__)

Work = Callable[..., Any]

BEGUN_WITHIN_SECONDS = 20.0
ENDED_WITHIN_SECONDS = 60.0  # from its beginning: two examinations, with one limit for the requests of each
LOOK_EVERY_SECONDS = 0.05
KEPT = timedelta(hours=1)
_works: dict[str, Work] = {}


def register(name: str, work: Work) -> None:
    """Add an errand. `work` takes and returns JSON; what it may raise reaches who asked: Refusal, ClusterError."""
    _works[name] = work


def is_for_others() -> bool:
    """Return True where no account of a cluster is at hand: in web."""
    return bool(settings.ROLE == "web")


def ask(name: str, **arguments: Any) -> Any:
    """Return what the errand returns; raises ClusterUnavailable if no worker answers in time."""
    if not is_for_others():
        return _works[name](**arguments)
    with transaction.atomic(durable=True):  # the worker sees it only once it is committed
        Errand.objects.filter(made_at__lt=timezone.now() - KEPT).delete()
        row = Errand.objects.create(name=name, arguments=arguments, language=translation.get_language() or "")
        enqueue.run(row.pk)
    return _answer(_waited_for(row))


def _waited_for(row: Errand) -> dict[str, Any]:
    """Return the answer. The connection is given back between two looks: others may need it."""
    since, begun = time.monotonic(), False
    while True:
        now: dict[str, Any] = dict(
            Errand.objects.filter(pk=row.pk).values("began_at", "answer").first() or {}
        )
        if isinstance(answer := now.get("answer"), dict):
            return answer
        if now.get("began_at") and not begun:
            since, begun = time.monotonic(), True
        is_late = time.monotonic() - since > (ENDED_WITHIN_SECONDS if begun else BEGUN_WITHIN_SECONDS)
        if is_late and (begun or Errand.objects.filter(pk=row.pk, began_at=None).delete()[0]):
            raise errors.ClusterUnavailable(_("No worker of Berth answered. Is one running?"))
        connection.close()
        time.sleep(LOOK_EVERY_SECONDS)


def _answer(told: dict[str, Any]) -> Any:
    if "refusal" in told:
        raise _kind(Refusal, told["kind"])(*told["refusal"])
    if "cluster" in told:
        raise _kind(errors.ClusterError, told["kind"])(*told["cluster"])
    if "failed" in told:
        raise errors.ClusterUnavailable(_("It failed in Berth's worker. Its log says why."))
    return told["done"]


def _kind(base: type[Any], name: str) -> type[Any]:
    """Return the subclass of that name; the base if there is none."""
    return next((one for one in _all(base) if one.__name__ == name), base)


def _all(base: type[Any]) -> list[type[Any]]:
    return [base, *(one for sub in base.__subclasses__() for one in _all(sub))]


def run(errand_id: UUID) -> None:
    """Do an errand once, in the worker. One that nobody waits for any more, or that was begun, is left alone."""
    rows = Errand.objects.filter(pk=errand_id, began_at=None)
    row = rows.first()
    if row is None or not rows.update(began_at=timezone.now()):
        return
    with translation.override(row.language or None):
        answer = _done(row)
    Errand.objects.filter(pk=errand_id).update(answer=answer)


def _done(row: Errand) -> dict[str, Any]:
    try:
        return {"done": _works[row.name](**row.arguments)}
    except Refusal as refusal:
        told = [refusal.code, str(refusal.message), str(refusal.hint)]
        return {"refusal": told, "kind": type(refusal).__name__}
    except errors.ClusterRefused as refused:
        return {"cluster": [refused.status, refused.reason, refused.message], "kind": "ClusterRefused"}
    except errors.ClusterError as error:
        return {"cluster": [error.message], "kind": type(error).__name__}
    except Exception:
        log.exception("the errand %s failed", row.name)
        return {"failed": True}
