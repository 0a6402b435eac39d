"""Django's way to ask for another place's passwords: the directory is asked where Berth's own password is not right."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.db import connection
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from accounts.credentials import sign_in
from accounts.directory import asking, entries
from accounts.directory.asking import Away
from accounts.directory.configuration import Directory
from accounts.errors import NotAllowed, Refusal
from accounts.models import User
from accounts.sign_on import admission


class DirectoryAway(Refusal):
    """The directory does not answer. Whether the name exists is not said."""

    status = 502


class DirectoryBackend(ModelBackend):
    @sensitive_variables("password")
    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        person: User | None = None,
        **more: Any,
    ) -> User | None:
        """Return the person of this name and password in the directory; None if it does not let them in. `person`: who
        is signed in already, and is asked for their password again. Raise DirectoryAway, or the Conflict of an account
        that is somebody else's, or TooMany."""
        directory: Directory | None = settings.LDAP
        if directory is None or not username or not password:
            return None
        claims = _told(directory, request, username, password, person)
        if claims is None or person is not None:
            return person if claims is not None else None
        try:
            return admission.admit(directory, claims)
        except NotAllowed:
            return None  # deactivated here: who guesses must not learn that the password was right


def prove(
    directory: Directory, request: HttpRequest | None, username: str, password: str
) -> dict[str, Any] | None:
    """Return what the directory says of the person, if it lets them in. Raise DirectoryAway, or TooMany before it is
    asked."""
    sign_in.count_at_directory(request, username)
    claims = _asked(directory, entries.by_name(directory, username), username, password)
    if claims is not None:
        sign_in.forget_at_directory(username)
    return claims


def _told(
    directory: Directory, request: HttpRequest | None, username: str, password: str, person: User | None
) -> dict[str, Any] | None:
    if person is None:
        return prove(directory, request, username, password)
    subject = admission.subject_of(person, directory)
    return (
        None if subject is None else _asked(directory, entries.by_subject(directory, subject), None, password)
    )


def _asked(directory: Directory, wanted: str, name: str | None, password: str) -> dict[str, Any] | None:
    if not connection.in_atomic_block:
        connection.close()  # others may need it, while the directory takes its time
    try:
        return asking.proven(directory, wanted, name, password, timezone.now())
    except Away as away:
        asking.log.warning("LDAP does not answer: %s", away)
        raise DirectoryAway(
            "directory_away",
            _("%(name)s does not answer.") % {"name": directory.name},
            _("Try again in a few minutes. A Berth password still works, if you have one."),
        ) from None
