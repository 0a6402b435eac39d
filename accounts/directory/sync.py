"""Compare the accounts that came from the directory with the directory: end what left, let roles follow groups.

An answer that is missing, empty or cut short changes nothing. Each person is changed by themselves, and a run that is
killed is made up for by the next.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts import members
from accounts.directory import asking
from accounts.directory.asking import Away
from accounts.directory.configuration import Directory
from accounts.directory.models import DirectorySync
from accounts.directory.plan import Plan, is_due, plan
from accounts.locks import alone, locked, one_at_a_time
from accounts.models import AuditEntry, Membership, Role, Tenant, User
from accounts.sign_on import admission
from accounts.trail import audit

log = logging.getLogger(__name__)

Outcome = DirectorySync.Outcome
# Of a task of the worker, which ends it after 120 s: reading must leave time for writing.
SECONDS_OF_A_TASK = 80
KEY = UUID("6c64c5a6-9a34-4f0b-8a43-6d5e0a1f7b11")  # of the lock that lets one run at a time


@dataclass(frozen=True)
class Report:
    """Result of a run, or of a run that only looks: user names."""

    outcome: str
    reason: str = ""
    people: int = 0
    left: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    without_owner: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def run_if_due(now: datetime | None = None) -> None:
    """Run at night, as a task of the worker."""
    directory: Directory | None = settings.LDAP
    row = DirectorySync.objects.filter(pk=1).first()
    settled_at = None if row is None or row.outcome == Outcome.FAILED else row.tried_at
    if directory is not None and is_due(now or timezone.now(), row.tried_at if row else None, settled_at):
        run(directory, seconds=SECONDS_OF_A_TASK)


def run(
    directory: Directory, *, dry_run: bool = False, force: bool = False, seconds: float | None = None
) -> Report:
    """Compare everybody. `force` also ends very many at once; `dry_run` only says what would happen."""
    with alone(KEY) as mine:
        if not mine:
            return Report(Outcome.FAILED, "another run is under way")
        try:
            report = _compared(directory, dry_run=dry_run, force=force, seconds=seconds)
        except Exception as error:
            log.exception("sync with LDAP")
            report = Report(Outcome.FAILED, f"an error of Berth ({type(error).__name__}): see the log")
        if not dry_run:
            _keep(directory, report)
    return report


def _compared(directory: Directory, *, dry_run: bool, force: bool, seconds: float | None) -> Report:
    accounts = admission.connected_people(directory)
    try:
        reading = asking.read(directory, set(accounts), seconds, timezone.now())
    except Away as away:
        return Report(Outcome.FAILED, str(away))
    tenants = set(Tenant.objects.values_list("slug", flat=True))
    admins = User.objects.filter(is_active=True, is_staff=True, service_of=None)
    wanted = plan(accounts, reading.present, directory, tenants, set(admins.values_list("pk", flat=True)))
    report = Report(
        Outcome.DONE,
        people=len(accounts),
        left=_names(wanted.leaving),
        returned=_names(wanted.returning),
        changed=_names(wanted.changing),
        without_owner=_without_owner(wanted.leaving),
    )
    if wanted.is_too_much and not force:
        return replace(report, outcome=Outcome.HELD_BACK, reason=_why_held_back(wanted))
    if dry_run:
        return report
    told = {user.pk: reading.present[uid] for uid, user in accounts.items() if uid in reading.present}
    failed = _apply(directory, wanted, told)
    return _without(report, failed) if failed else report


def _apply(directory: Directory, wanted: Plan, told: dict[UUID, dict[str, Any]]) -> list[str]:
    """Change each person by themselves. Return the names of those on whom it failed: it does not stop the others."""
    failed = []
    for user in (*wanted.leaving, *wanted.returning, *wanted.changing):
        try:
            _follow(directory, user, told.get(user.pk))
        except Exception:
            log.exception("sync with LDAP: %s", user.username)
            failed.append(user.username)
    return sorted(failed)


def _follow(directory: Directory, user: User, told: dict[str, Any] | None) -> None:
    """Do to the account what the directory says of its person; None: they are gone."""
    members.follow_directory(user, is_there=told is not None)
    if told is None:
        return
    with transaction.atomic():
        one_at_a_time(admission.LOCK)
        row = locked(User.objects.filter(pk=user.pk, is_active=True)).first()
        if row is not None:
            admission.follow(row, directory, told)


def _without(report: Report, failed: list[str]) -> Report:
    """Return the report of a run that failed on these people, and is done for the others."""
    left, returned, changed = (
        [name for name in names if name not in failed]
        for names in (report.left, report.returned, report.changed)
    )
    reason = f"{len(failed)} not followed, see the log: {', '.join(failed)}"
    return replace(
        report,
        outcome=Outcome.FAILED,
        reason=reason,
        left=left,
        returned=returned,
        changed=changed,
        failed=failed,
    )


def _keep(directory: Directory, report: Report) -> None:
    """Write the result down: the row, the trail if anything changed or was refused, and the log."""
    now = timezone.now()
    counts = {
        "name": directory.name,
        "people": report.people,
        "left": len(report.left),
        "returned": len(report.returned),
        "changed": len(report.changed),
    }
    values: dict[str, Any] = {
        "tried_at": now,
        "outcome": report.outcome,
        "reason": report.reason[:500],
        "people": report.people,
        "leaving": len(report.left),
    }
    if report.outcome == Outcome.DONE:
        values["done_at"] = now
    with transaction.atomic():
        DirectorySync.objects.update_or_create(pk=1, defaults=values)
        if report.outcome == Outcome.HELD_BACK:
            refused = AuditEntry.Outcome.REFUSED
            audit.record(None, "directory.sync", outcome=refused, data=counts | {"code": "too_many_leave"})
        elif report.left or report.returned or report.changed:
            failed = {"failed": report.failed} if report.failed else {}
            audit.record(
                None, "directory.sync", data=counts | {"without_owner": report.without_owner} | failed
            )
    level = logging.INFO if report.outcome == Outcome.DONE else logging.ERROR
    log.log(level, "sync with LDAP: %s %s", report.outcome, report.reason or counts)
    if report.without_owner and report.outcome != Outcome.HELD_BACK:
        log.warning("sync with LDAP: no owner is left in %s", ", ".join(report.without_owner))


def _without_owner(leaving: list[User]) -> list[str]:
    """Return the slugs of tenants that have no active owner without these people."""
    gone = [user.pk for user in leaving]
    theirs = Membership.objects.filter(user__in=gone, role=Role.OWNER).values("tenant")
    owners = Membership.objects.filter(role=Role.OWNER, user__is_active=True, user__service_of=None)
    owned = owners.exclude(user__in=gone).values("tenant")
    found = Tenant.objects.filter(pk__in=theirs).exclude(pk__in=owned).order_by("slug")
    return list(found.values_list("slug", flat=True))


def _why_held_back(wanted: Plan) -> str:
    losing = f", {wanted.losing_roles} would lose all roles" if wanted.losing_roles else ""
    admins = ", no admin would stay" if wanted.no_admin_stays else ""
    return f"{len(wanted.leaving)} of {wanted.active} people would leave at once{losing}{admins}"


def _names(users: list[User]) -> list[str]:
    return sorted(user.username for user in users)
