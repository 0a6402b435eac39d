"""Files of volumes over SFTP: the volume that a person named, and the session that serves it. From rows alone."""

from __future__ import annotations

from uuid import UUID

from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Conflict, NotThere, Refusal
from accounts.models import User
from accounts.trail import audit
from storage import access, problems
from storage.files import client, sessions
from storage.models import FilesPhase, FilesSession, Volume

from . import rights
from .rights import Person


class Served:
    """A ready session: where its pod is, and what to send it first."""

    def __init__(self, session: FilesSession, *, read_only: bool) -> None:
        self.session, self.volume_id = session.pk, session.volume_id
        self.read_only = read_only
        host, _colon, port = session.host.rpartition(":")
        self.host, self.port = host.strip("[]"), int(port)
        lines = [
            f"POST /sftp?read_only={'true' if read_only else 'false'} HTTP/1.1",
            "Host: files",
            *(f"{name}: {value}" for name, value in client.headers(session).items()),
        ]
        self.request = "\r\n".join([*lines, "", ""]).encode()


def named(actor: Actor, name: str) -> Volume:
    """Return the volume that the person may open: by its id, else by its name, theirs first."""
    rows = access.visible(actor).filter(bin_until=None).select_related(*access.RELATED)
    found = list(rows.filter(pk__in=_ids(name))) or [
        row for row in rows.filter(name__iexact=name) if sessions.may_open(actor, row)
    ]
    own = [row for row in found if row.owner_id == actor.user.pk]
    if len(own or found) > 1:
        text = _("Several volumes are called “%(name)s”.") % {"name": name}
        raise Conflict("ambiguous", text, _("Use the id of one, from the address of its page."))
    if not found:
        text = _("There is no volume “%(name)s” that you may open.") % {"name": name}
        raise NotThere("not_found", text, _("See your volumes under Storage in Berth."))
    return (own or found)[0]


def _ids(name: str) -> list[UUID]:
    """Return the id that a name is, as pages show ids; none if it is none."""
    try:
        found = UUID(name)
    except ValueError:
        return []
    return [found] if str(found) == name else []


def begin(person: Person, address: str | None) -> UUID:
    """Start the session of the volume that the person named, or find it. Return its id. Raise a Refusal."""
    actor = Actor(User.objects.get(pk=person.user_id))
    audit.client_address.set(address)
    with person.speaking():
        session, _is_new = sessions.start(actor, named(actor, person.volume))
    return session.pk


def ready(person: Person, session_id: UUID) -> Served | None:
    """Return the session once it is ready; None: not yet. Raise a Refusal if it ended, or may not be used any more."""
    row = FilesSession.objects.select_related("volume__tenant", "volume__owner").get(pk=session_id)
    actor = Actor(User.objects.get(pk=person.user_id))
    with person.speaking():
        sessions.require(actor, row.volume)
        if row.phase in (FilesPhase.ENDING, FilesPhase.ENDED):
            text = _("The files of “%(volume)s” were closed.") % {"volume": row.volume.name}
            raise Conflict("files_session_ending", text, _("Try again in a few seconds."))
    if row.phase != FilesPhase.READY:
        return None
    writes = row.writes and sessions.may_open(actor, row.volume, writes=True)
    return Served(row, read_only=not writes)


def why_not_ready(person: Person, session_id: UUID) -> str:
    """Return why the session does not get ready, in the person's language."""
    row = FilesSession.objects.get(pk=session_id)
    with person.speaking():
        if row.problem:
            return f"{problems.sentence(row.problem, row.problem_data)} {problems.hint(row.problem, row.problem_data)}"
        return _("The files do not open. Look on the volume's page in Berth.")


def may_go_on(person: Person, served: Served, *, is_used: bool) -> bool:
    """Return True if the person may still do that; a session that they use does not end as unused."""
    if rights.still(person, ()) is None:
        return False
    try:
        now = ready(person, served.session)
    except Refusal:
        return False
    if now is None or now.read_only > served.read_only:
        return False
    if is_used:
        sessions.touch(FilesSession(pk=served.session))
    return True
