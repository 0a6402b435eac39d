"""The nightly sync with a real OpenLDAP server: what left ends, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts import members
from accounts.credentials import tokens
from accounts.directory import asking, entries, examining, sync
from accounts.directory.configuration import Directory, directory_from
from accounts.directory.models import DirectorySync
from accounts.errors import NotSignedIn
from accounts.models import Role, User
from accounts.sign_on import admission
from accounts.signals import access_changed
from monitoring.alerts import own_parts
from tests.accounts.directory.slapd import BASE, Slapd, enter
from tests.accounts.people import People, heard
from tests.accounts.sign_on.visiting import roles_of, trail

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("people")]


def active() -> set[str]:
    return set(
        User.objects.filter(is_active=True, socialaccount__isnull=False).values_list("username", flat=True)
    )


def came_in(uni: Slapd, *names: str) -> None:
    """People of the directory with accounts here, as their first sign-ins make them."""
    with uni.root() as connection:
        for name in names:
            assert connection.search(BASE, f"(uid={name})", attributes=["entryUUID"]), name
            subject = connection.response[0]["raw_attributes"]["entryUUID"][0].decode()
            user = User.objects.create_user(
                name, f"{name}@example.org", first_name=name.title(), last_name="Lovelace"
            )
            SocialAccount.objects.create(user=user, provider="ldap", uid=subject)


def here() -> Directory:
    assert settings.LDAP is not None
    return settings.LDAP


def run(**options: Any) -> sync.Report:
    return sync.run(here(), **options)


def test_who_left_ends_and_who_is_back_returns_with_what_groups_say(uni: Slapd, people: People) -> None:
    for name, groups in (("ada", ["vision-team"]), ("bea", ["vision-leads"]), ("cid", [])):
        uni.person(name, groups=groups)
        assert enter(name) == (302, name)
    _token, secret = tokens.issue(User.objects.get(username="ada"), "nightly", ["read"])
    assert roles_of("bea") == {"demo": "owner"}
    uni.leave_group("bea", "vision-leads")
    uni.change("cid", mail="c@example.org")
    uni.move("ada", "elsewhere")
    assert run(dry_run=True).left == ["ada"]
    assert (active(), DirectorySync.objects.count()) == ({"ada", "bea", "cid"}, 0)
    with heard(access_changed) as told:
        report = run()
    assert (report.left, report.changed, report.outcome) == (["ada"], ["bea", "cid"], "done")
    assert (active(), roles_of("bea")) == ({"bea", "cid"}, {})
    assert {"ada", "bea"} <= set(told)
    assert User.objects.get(username="cid").email == "c@example.org"
    assert trail("user.deactivate") == [("", "done", {"username": "ada", "by": "directory"})]
    with pytest.raises(NotSignedIn):
        tokens.authenticate(secret)
    assert (run().left, run().changed) == ([], [])  # nothing is left to do

    uni.move("ada", "people", was="elsewhere")
    uni.leave_group("ada", "vision-team")
    assert run().returned == ["ada"]
    assert (active(), roles_of("ada")) == ({"ada", "bea", "cid"}, {})
    members.set_active(people.admin, User.objects.get(username="ada"), active=False)
    assert (run().returned, active()) == ([], {"bea", "cid"})  # an admin decided, not the sync


def test_the_last_owner_stays_owner_without_the_group_and_one_who_left_is_named(
    uni: Slapd, people: People
) -> None:
    members.set_role(people.admin, people.demo, "bob", Role.OWNER)
    members.remove(people.bob, people.demo, "alice")
    uni.person("ada", groups=["vision-leads"])
    assert enter("ada") == (302, "ada")
    members.remove(people.admin, people.demo, "bob")
    uni.leave_group("ada", "vision-leads")
    run()
    assert roles_of("ada") == {"demo": "owner"}
    uni.remove("ada")
    uni.person("someone")
    assert run().without_owner == ["demo"]
    assert "ada" not in active()


def test_fifteen_hundred_people_come_page_by_page_and_very_many_at_once_are_not_ended(
    uni: Slapd, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"p{number:04}" for number in range(1500)]
    uni.people(names)
    came_in(uni, *names[::100], "p1499", "p1498")
    report = run()
    assert (report.outcome, report.people, report.left) == ("done", 17, [])
    with asking.connected(here()) as connection:
        assert len(list(asking.everybody(connection, here()))) == 1500
    uni.remove(*names[::100][:6])
    assert run().outcome == "held_back"
    assert len(active()) == 17
    assert [one.code for one in own_parts.directory(timezone.now())] == ["directory_held_back"]
    assert trail("directory.sync")[-1][1:] == (
        "refused",
        {"people": 17, "left": 6, "returned": 0, "changed": 0, "code": "too_many_leave"},
    )
    with pytest.raises(CommandError, match="6 of 17 people would leave at once"):
        call_command("sync_directory", "--dry-run")
    call_command("sync_directory", "--force")
    assert "17 accounts compared, 6 changed." in capsys.readouterr().out
    assert len(active()) == 11
    assert not list(own_parts.directory(timezone.now()))


def test_a_directory_that_is_away_empty_or_breaks_off_changes_nothing(
    uni: Slapd, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    uni.people(["ada", "bea", "cid"])
    came_in(uni, "ada", "bea", "cid")
    for wrong in (
        {"BERTH_LDAP_PEOPLE_FILTER": "(objectClass=device)"},
        {"BERTH_LDAP_PEOPLE_BASE": f"ou=nothing,{BASE}"},
        {"BERTH_LDAP_GROUP_BASE": f"ou=people,{BASE}"},
        {"BERTH_LDAP_BIND_PASSWORD": "old"},
    ):
        settings.LDAP = directory_from(uni.settings(**wrong))
        assert run().outcome == "failed", wrong
    settings.LDAP = directory_from(uni.settings())
    monkeypatch.setattr(asking, "PAGE", 1)
    uni.remove("ada")
    real = asking.everybody

    def killed_in_the_middle(*asked: Any) -> Iterator[entries.Entry]:
        for entry in real(*asked):
            yield entry
            uni.stop()

    monkeypatch.setattr(asking, "everybody", killed_in_the_middle)
    assert run().outcome == "failed"
    assert (active(), uni.process) == ({"ada", "bea", "cid"}, None)
    row = DirectorySync.objects.get()
    assert (row.outcome, row.done_at, bool(row.reason)) == ("failed", None, True)
    late = timezone.now() + own_parts.SYNC_LATE_AFTER + timedelta(minutes=1)
    assert [one.code for one in own_parts.directory(late)] == ["directory_late"]


def test_one_person_on_whom_it_fails_does_not_stop_the_others(
    uni: Slapd, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    uni.people(["ada", "bea", "cid"])
    came_in(uni, "ada", "bea", "cid")
    for name in ("ada", "bea"):
        uni.change(name, sn="King")
    real = admission.follow

    def follow(user: User, *asked: Any) -> None:
        if user.username == "ada":
            raise ValueError
        real(user, *asked)

    monkeypatch.setattr(admission, "follow", follow)
    with pytest.raises(CommandError, match=r"see the log: ada\. The others are done"):
        call_command("sync_directory")
    assert "bea: has another" in capsys.readouterr().out
    assert User.objects.get(username="bea").last_name == "King"
    assert (DirectorySync.objects.get().outcome, trail("directory.sync")[-1][2]["failed"]) == (
        "failed",
        ["ada"],
    )
    assert [one.message for one in examining.examined(here()) if one.hint.endswith("see the log: ada")]
    monkeypatch.setattr(sync, "plan", None)
    assert (run().outcome, DirectorySync.objects.get().reason) == (
        "failed",
        "an error of Berth (TypeError): see the log",
    )


def test_doctor_says_what_it_finds_and_what_is_wrong(
    uni: Slapd, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    uni.person("ada")

    def said() -> str:
        with pytest.raises((CommandError, SystemExit)):
            call_command("doctor")
        return capsys.readouterr().out

    found = said()
    assert "answers" in found and "The filter finds people: 1." in found and "No sync has run yet" in found
    assert "berth-admins, readers, vision-leads, vision-team" in found
    assert "Nobody has the attribute memberOf" in found
    run()
    settings.LDAP = directory_from(uni.settings("vision-team=demo:member, typo=demo:member"))
    uni.change("ada", mail="")
    assert "Groups not found below BERTH_LDAP_GROUP_BASE: typo." in (found := said())
    assert "Last sync: " in found
    settings.LDAP = directory_from(uni.settings(BERTH_LDAP_CA_FILE=str(uni.folder / "stranger.pem")))
    asking._failed_at.clear()
    assert "does not answer" in (found := said()) and "CERTIFICATE_VERIFY_FAILED" in found
