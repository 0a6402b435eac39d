"""A half-done sign-in: the password was right, another step (such as the code) is still to come. `how` names whose
password it was, Berth's or the directory's; `typed` is the name that came with it.

It is kept in the anonymous session for ten minutes; a change of the password ends it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from django.http import HttpRequest

from accounts.credentials import secrets
from accounts.models import User
from accounts.sign_on import second_factor

LIFETIME_SECONDS = 600
WAITING = "waiting_sign_in"
SET_UP = "second_factor_set_up"


@dataclass(frozen=True)
class Waiting:
    user: User
    target: str
    code_given: bool
    how: str
    typed: str


def hold(request: HttpRequest, user: User, target: str, *, code_given: bool, how: str, typed: str) -> None:
    request.session.cycle_key()
    request.session[WAITING] = {
        "user": str(user.pk),
        "proof": user.get_session_auth_hash(),
        "target": target,
        "code_given": code_given,
        "how": how,
        "typed": typed,
        "at": time.time(),
    }


def held(request: HttpRequest) -> Waiting | None:
    kept = request.session.get(WAITING)
    if not kept or time.time() - kept["at"] > LIFETIME_SECONDS:
        return None
    user = User.objects.filter(pk=kept["user"], is_active=True).first()
    if user is None or user.get_session_auth_hash() != kept["proof"]:
        return None
    how, typed = kept.get("how", "password"), kept.get("typed", "")
    return Waiting(user, kept["target"], kept["code_given"], how, typed)


def drop(request: HttpRequest) -> None:
    request.session.pop(WAITING, None)
    request.session.pop(SET_UP, None)


def secret_to_set_up(request: HttpRequest) -> str:
    """Return the secret, the same until the set-up is done. It is kept encrypted: sessions are in the database."""
    kept = request.session.get(SET_UP)
    if kept is None:
        kept = request.session[SET_UP] = secrets.encrypt(second_factor.new_secret())
    return secrets.decrypt(kept)
