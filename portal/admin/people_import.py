"""People in bulk: what each line of a CSV would do, and doing it. The same text a second time changes nothing.

Lines have user name, e-mail, first name, last name, tenant and role. A line for somebody who is known adds them to the
tenant or changes their role; it never changes who they are, and never removes anybody.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.translation import gettext as _

from accounts import members, signals
from accounts.access import Actor
from accounts.locks import locked, one_at_a_time
from accounts.models import Membership, Role, Tenant, User
from accounts.people import changing as people
from accounts.text import is_visible

COLUMNS = ("username", "email", "first_name", "last_name", "tenant", "role")
NEEDED = "username"
MOST_LINES = 200  # a hash of a password takes a tenth of a second
LONGEST = 100_000
LONGEST_NAME = 150


@dataclass(frozen=True)
class Line:
    """Line of the CSV, trimmed. `fault`: why it cannot be read; empty if it can."""

    number: int
    values: Mapping[str, str]
    fault: str = ""

    def __getattr__(self, name: str) -> str:
        if name in COLUMNS:
            return self.values.get(name, "")
        raise AttributeError(name)


@dataclass(frozen=True)
class Fate:
    """Effect of a line: it creates the person, gives them a role, nothing, or why it is refused."""

    line: Line
    creates: bool = False
    role: str = ""  # to give; empty: none
    refused: str = ""
    what: tuple[str, ...] = field(default=())

    @property
    def does_something(self) -> bool:
        return not self.refused and (self.creates or bool(self.role))


def parse(text: str) -> list[Line]:
    """Read the lines. A first line with names of columns sets their order. Raise ValueError with what is wrong."""
    dialect = _dialect(text)
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text), dialect)]
    except csv.Error as error:
        raise ValueError(_("This is not a CSV file: %(why)s") % {"why": error}) from None
    numbered = [(number, row) for number, row in enumerate(rows, start=1) if any(row)]
    columns: Sequence[str] = COLUMNS
    if numbered and NEEDED in (names := [cell.lower().replace(" ", "_") for cell in numbered[0][1]]):
        if unknown := [name for name in names if name not in COLUMNS]:
            raise ValueError(
                _("Unknown column “%(name)s”. Columns are: %(names)s.")
                % {"name": unknown[0][:40], "names": ", ".join(COLUMNS)}
            )
        columns, numbered = names, numbered[1:]
    if not numbered:
        raise ValueError(_("There is no line with a person."))
    if len(numbered) > MOST_LINES:
        raise ValueError(_("At most %(most)d people at once.") % {"most": MOST_LINES})
    return [_line(number, row, columns) for number, row in numbered]


def _dialect(text: str) -> type[csv.Dialect]:
    """Return the dialect with the delimiter of the first line: spreadsheets write commas, semicolons or tabs."""
    first = text.lstrip("\ufeff \r\n").partition("\n")[0]
    delimiters = sorted(",;\t", key=first.count, reverse=True)
    return type("Found", (csv.excel,), {"delimiter": delimiters[0]})


def _line(number: int, row: Sequence[str], columns: Sequence[str]) -> Line:
    values = dict(zip(columns, (cell.lstrip("\ufeff") for cell in row), strict=False))
    values["role"] = values.get("role", "").lower()
    line = Line(number, values)
    too_many = len(row) > len(columns) and any(row[len(columns) :])
    return replace(line, fault=_("It has more cells than columns.") if too_many else _fault(line))


def _fault(line: Line) -> str:
    try:
        UnicodeUsernameValidator()(line.username)
    except ValidationError as error:
        return str(error.message)
    if any(len(value) > LONGEST_NAME or not is_visible(value) for value in line.values.values()):
        return _("A value is too long, or has characters that cannot be seen.")
    if line.email:
        try:
            validate_email(line.email)
        except ValidationError:
            return _("“%(email)s” is not an e-mail address.") % {"email": line.email}
    if line.role and line.role not in Role.values:
        return _("“%(role)s” is not a role. Use owner, member or viewer.") % {"role": line.role}
    if line.role and not line.tenant:
        return _("It has a role and no tenant.")
    return ""


def fates(lines: Iterable[Line], *, with_password: bool) -> list[Fate]:
    """Return what each line does now. Three queries whatever their number."""
    lines = list(lines)
    people = {
        user.username: user for user in User.objects.filter(username__in=[one.username for one in lines])
    }
    tenants = {one.slug: one for one in Tenant.objects.filter(slug__in=[one.tenant for one in lines])}
    rows = Membership.objects.filter(user__in=people.values(), tenant__in=tenants.values())
    roles = {(row.user_id, row.tenant_id): row.role for row in rows}
    seen: set[tuple[str, str]] = set()
    made: set[str] = set()
    found = []
    for line in lines:
        fate = _fate(line, people.get(line.username), tenants, roles, is_made=line.username in made)
        if (line.username, line.tenant) in seen:
            fate = Fate(line, refused=_("A line above is about the same person and tenant."))
        seen.add((line.username, line.tenant))
        if fate.creates:
            made.add(line.username)
        found.append(replace(fate, what=tuple(_words(fate, tenants, with_password))))
    return found


def _fate(
    line: Line,
    person: User | None,
    tenants: Mapping[str, Tenant],
    roles: Mapping[tuple[UUID, UUID], str],
    *,
    is_made: bool,
) -> Fate:
    tenant = tenants.get(line.tenant)
    if line.fault:
        return Fate(line, refused=line.fault)
    if line.tenant and tenant is None:
        text = _("There is no tenant with the slug “%(slug)s”.")
        return Fate(line, refused=text % {"slug": line.tenant})
    if person is not None and not person.is_active:
        return Fate(line, refused=_("This person is deactivated. Reactivate them first."))
    known = roles.get((person.pk, tenant.pk)) if person and tenant else None
    wanted = (line.role or known or Role.MEMBER) if tenant else ""
    return Fate(line, creates=person is None and not is_made, role="" if wanted == known else wanted)


def _words(fate: Fate, tenants: Mapping[str, Tenant], with_password: bool) -> Iterable[str]:
    line = fate.line
    if fate.refused:
        return
    if fate.creates and with_password:
        yield _("A new person, with a first password.")
    elif fate.creates:
        yield _("A new person, who signs in with your organisation's sign-on.")
    if fate.role:
        facts = {"role": Role(fate.role).label, "tenant": tenants[line.tenant].name}
        yield _("Gets the role %(role)s in %(tenant)s.") % facts
    if not fate.does_something:
        yield _("No change needed.")


def digest(found: Iterable[Fate]) -> str:
    """Return what tells one preview from another: nothing is done that was not shown."""
    told = "\n".join(repr((one.line.number, one.line.username, one.refused, one.what)) for one in found)
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def apply_as_shown(actor: Actor, lines: Sequence[Line], seen: str, *, with_password: bool) -> str:
    """Do what the preview `seen` showed. Return first passwords by name and the number of lines as JSON.

    Return "" and write nothing if the lines would do something else by now. One import at a time, inside a transaction:
    another one waits, and then finds what this one did.
    """
    one_at_a_time("people.import")
    found = fates(lines, with_password=with_password)
    if digest(found) != seen:
        return ""
    passwords = apply(actor, found, with_password=with_password)
    return json.dumps({"passwords": passwords, "done": sum(fate.does_something for fate in found)})


def apply(actor: Actor, found: Sequence[Fate], *, with_password: bool) -> dict[str, str]:
    """Do what the lines say, all or nothing. Return the first passwords of new people.

    Raise a Refusal, and write nothing, if one of them is refused by now.
    """
    actor.require_admin()
    passwords: dict[str, str] = {}
    with signals.access_changes_together():
        named = {fate.line.tenant for fate in found if fate.role}
        tenants = {one.slug: one for one in locked(Tenant.objects.filter(slug__in=named))}
        for fate in found:
            line = fate.line
            if not fate.does_something:
                continue
            if fate.creates:
                passwords |= _create(actor, line, with_password=with_password)
            if fate.role:
                members.set_role(actor, tenants[line.tenant], line.username, fate.role)
    return passwords


def _create(actor: Actor, line: Line, *, with_password: bool) -> dict[str, str]:
    person = User(
        username=line.username, email=line.email, first_name=line.first_name, last_name=line.last_name
    )
    password = people.create(actor, person, with_password=with_password, by="csv")
    return {person.username: password} if password else {}
