"""Sentences of alerts, made when they are read. Codes of troubles have theirs in `workspaces.state.story`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

from workloads.pods.words import Line
from workspaces.state import story

_LINES: dict[str, Line] = {
    "part_silent": Line(
        _("A part of Berth is silent: %(part)s."),
        _("See its log and restart it. Nothing is lost, but what it does is not done meanwhile."),
    ),
    "tasks_wait": Line(
        _("Tasks of Berth have been waiting for %(minutes)s min."),
        _("Run another worker, or see in the log of the workers what holds them up."),
    ),
    "queue_stands_still": Line(
        _("Requests in the pool %(pool)s are not looked at."),
        _(
            "No admission pass has run for minutes. See the log of the workers, and whether the cluster answers."
        ),
    ),
    "watch_silent": Line(
        _("Nothing has been heard about %(kind)s for minutes."),
        _("Test the connection of the cluster, and check Berth's rights with manage.py doctor."),
    ),
    "cluster_unreachable": Line(
        _("The cluster %(cluster)s does not answer."),
        _("Running workspaces there are not affected, but nothing can start or stop. Test its connection."),
    ),
    "mail_stuck": Line(
        _("Mail has been waiting for %(minutes)s min."),
        _("See Notices in the admin for the mail server's last answer."),
    ),
    "mail_given_up": Line(
        _("Mail could not be sent, and was given up."),
        _("See Notices in the admin for the last error. Send them again once the mail server accepts them."),
    ),
    "credential_ends": Line(
        _("%(what)s ends on %(date)s."),
        _("Replace it before then: afterwards Berth cannot reach what it is for."),
    ),
    "directory_held_back": Line(
        _(
            "The sync with the LDAP directory was held back: %(leaving)s of %(people)s people would leave at once."
        ),
        _(
            "Nobody was deactivated. Compare with manage.py sync_directory --dry-run. If the people really left, run "
            "manage.py sync_directory --force."
        ),
    ),
    "directory_late": Line(
        _("The sync with the LDAP directory has not succeeded for more than a day."),
        _("People who left can still sign in with what they have. manage.py doctor says what is wrong."),
    ),
    "agent_token_unused": Line(
        _("The agent token “%(name)s” has not been used for %(days)s days."),
        _("Revoke it in the admin if no agent needs it."),
    ),
}


# Words of other sources: (sentence, hint) by code.
Describe = Callable[[str, Mapping[str, Any]], tuple[str, str]]
_others: dict[str, Describe] = {}


def register(codes: Iterable[str], describe: Describe) -> None:
    """Add the words for codes of another source."""
    _others.update(dict.fromkeys(codes, describe))


def sentence(code: str, data: Mapping[str, Any]) -> str:
    if (line := _LINES.get(code)) is not None:
        return str(line.sentence) % data
    if code in _others:
        return _others[code](code, data)[0]
    return story.sentence(code, data)


def hint(code: str, data: Mapping[str, Any]) -> str:
    if (line := _LINES.get(code)) is not None:
        return str(line.hint)
    if code in _others:
        return _others[code](code, data)[1]
    return story.hint(code, data)
