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
from django.db.models.functions import Now
from django.utils import translation
from django.utils.translation import gettext as _

from accounts.errors import Conflict, Refusal
from clusters import errors
from clusters.errands import enqueue
from clusters.models import Errand

log = logging.getLogger(__name__)

Work = Callable[..., Any]

BEGUN_WITHIN_SECONDS = 20.0
ENDED_WITHIN_SECONDS = 100.0  # from its beginning; the worker ends a task after 120
LOOK_EVERY_SECONDS = 0.05
KEPT = timedelta(hours=1)
_works: dict[str, Work] = {}


class NoAnswer(errors.ClusterUnavailable):
    """Silence of the workers: the cluster rejected nothing, and may not have been asked."""


def register(name: str, work: Work) -> None:
    """Add an errand. `work` takes and returns JSON; what it may raise reaches who asked: Refusal, ClusterError."""
    _works[name] = work


def is_for_others() -> bool:
    """Return True where no account of a cluster is at hand: in web."""
    return bool(settings.ROLE == "web")


def ask(name: str, **arguments: Any) -> Any:
    """Return what the errand returns; raises NoAnswer if no worker answers in time."""
    if not is_for_others():
        return _works[name](**arguments)
    with transaction.atomic(durable=True):  # the worker sees it only once it is committed
        row = Errand.objects.create(name=name, arguments=arguments, language=translation.get_language() or "")
        enqueue.run(row.pk)
    answer = _waited_for(row)
    Errand.objects.filter(pk=row.pk).delete()  # its arguments may hold an encrypted kubeconfig
    return _answer(answer)


def forget_old(**_signal: Any) -> None:
    """Delete errands whose answer nobody read."""
    Errand.objects.filter(made_at__lt=Now() - KEPT).delete()


def conflict(error: errors.ClusterError) -> Conflict:
    """Return the refusal of an admin's action that a cluster rejected, or that no worker did."""
    if isinstance(error, NoAnswer):
        hint = _("Try again in a minute. If that fails too, check Berth's workers.")
        return Conflict("worker_silent", error.message, hint)
    text = _("The cluster rejected it: %(why)s") % {"why": error.message}
    return Conflict("cluster_refused", text, _("Check the cluster, then try again."))


def _waited_for(row: Errand) -> dict[str, Any]:
    """Return the answer. The connection is given back between two looks: others may need it."""
    since, begun = time.monotonic(), False
    while True:
        now = Errand.objects.filter(pk=row.pk).values("began_at", "answer").first()
        if now is None:
            raise NoAnswer(_("The answer of Berth's worker is gone. Check whether it was done."))
        if isinstance(now["answer"], dict):
            return now["answer"]
        if now["began_at"] and not begun:
            since, begun = time.monotonic(), True
        limit = ENDED_WITHIN_SECONDS if begun else BEGUN_WITHIN_SECONDS
        if time.monotonic() - since > limit:
            _give_up(row, begun=begun, seconds=int(limit))
        connection.close()
        time.sleep(LOOK_EVERY_SECONDS)


def _give_up(row: Errand, *, begun: bool, seconds: int) -> None:
    """Raise NoAnswer, unless a worker begins it just now. What was not begun is not done later."""
    if begun:
        text = _("Berth's worker has not finished within %(seconds)d seconds. It may still do so.")
        raise NoAnswer(text % {"seconds": seconds})
    if Errand.objects.filter(pk=row.pk, began_at=None).delete()[0]:
        text = _(
            "No worker of Berth began it within %(seconds)d seconds: all are busy, or none is running. "
            "Nothing was done."
        )
        raise NoAnswer(text % {"seconds": seconds})


def _answer(told: dict[str, Any]) -> Any:
    if "refusal" in told:
        raise _kind(Refusal, told["kind"])(*told["refusal"])
    if "cluster" in told:
        raise _kind(errors.ClusterError, told["kind"])(*told["cluster"])
    if "failed" in told:
        raise NoAnswer(_("It failed in Berth's worker. Its log says why."))
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
    if row is None or not rows.update(began_at=Now()):
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
