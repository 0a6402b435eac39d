"""Examples of what admins do with people, tokens, notices and announcements."""

from __future__ import annotations

from allauth.mfa.totp.internal import auth as totp

from accounts.models import User
from accounts.notices.kinds import Kind
from accounts.notices.models import Notice
from accounts.sign_on import second_factor
from tests.portal.parity.book import example
from tests.portal.parity.scene import Scene
from tests.shared.workspace_rows import make_workspace

FRIDA = {"username": "frida", "last_name": "Baker", "email": "frida@example.org"}


@example("POST people/", "accounts.user add", "accounts.user accounts_user_import")
def a_person(scene: Scene) -> None:
    made = scene.admin.api("POST people/", FRIDA)
    assert made["first_password"]
    assert FRIDA.items() <= scene.admin.get("people/frida/").items()


@example("PATCH people/<username:username>/", "accounts.user change")
def another_name_and_an_admin(scene: Scene) -> None:
    wanted = {"last_name": "Baker", "is_admin": True}
    scene.admin.api("PATCH people/bob/", wanted)
    assert wanted.items() <= scene.admin.get("people/bob/").items()


@example("PATCH people/<username:username>/", "accounts.user deactivate", "accounts.user reactivate")
def a_person_is_deactivated_and_comes_back(scene: Scene) -> None:
    for is_active in (False, True):
        scene.admin.api("PATCH people/bob/", {"is_active": is_active})
        assert scene.admin.get("people/bob/")["is_active"] is is_active


@example("POST people/<username:username>/password/", "accounts.user change")
def a_new_first_password(scene: Scene) -> None:
    password = scene.admin.api("POST people/bob/password/")["first_password"]
    assert User.objects.get(username="bob").check_password(password)


@example("POST people/<username:username>/reset-second-factor/", "accounts.user reset_second_factor")
def a_second_factor_is_reset(scene: Scene) -> None:
    bob, secret = scene.cast.bob.user, second_factor.new_secret()
    now = next(totp.yield_hotp_counters_from_time())
    second_factor.turn_on(bob, secret, totp.format_hotp_value(totp.hotp_value(secret, now)))
    scene.admin.api("POST people/bob/reset-second-factor/")
    assert not second_factor.is_on(bob)


@example("DELETE people/<username:username>/", "accounts.user delete")
def a_person_is_deleted(scene: Scene) -> None:
    scene.admin.api("DELETE people/victor/")
    assert "victor" not in {one["username"] for one in scene.admin.list("people/")}


@example("POST announcements/", "accounts.announcement add")
def an_announcement(scene: Scene) -> None:
    scene.admin.api("POST announcements/", {"text": "New GPUs"})
    assert texts(scene) == ["New GPUs"]


@example("PATCH announcements/<uuid:id>/", "accounts.announcement change")
def an_announcement_is_changed(scene: Scene) -> None:
    made = scene.admin.api("POST announcements/", {"text": "New GPUs"})
    scene.admin.api(f"PATCH announcements/{made['id']}/", {"text": "Old GPUs"})
    assert texts(scene) == ["Old GPUs"]


@example("DELETE announcements/<uuid:id>/", "accounts.announcement delete", "accounts.announcement end")
def an_announcement_ends(scene: Scene) -> None:
    made = scene.admin.api("POST announcements/", {"text": "New GPUs"})
    scene.admin.api(f"DELETE announcements/{made['id']}/")
    assert texts(scene) == []


def texts(scene: Scene) -> list[str]:
    """Return the announcements that alice sees."""
    return [one["text"] for one in scene.alice.list("announcements/")]


@example("POST admin-actions/accounts.apitoken/revoke/", "accounts.apitoken revoke")
def somebody_s_token_is_revoked(scene: Scene) -> None:
    made = scene.alice.api("POST tokens/", {"name": "lost", "scopes": ["read"]})
    scene.admin.acts("accounts.apitoken", "revoke", made["id"])
    assert "lost" not in {one["name"] for one in scene.alice.list("tokens/")}


@example("POST admin-actions/accounts.notice/send_again/", "accounts.notice send_again")
def a_mail_is_sent_again(scene: Scene) -> None:
    row = make_workspace(scene.cast, scene.cast.bob)
    notice = Notice.objects.create(
        user=scene.cast.bob.user, kind=Kind.FAILED, subject="workspace", subject_id=row.pk, in_berth=True,
        mail=Notice.Mail.GIVEN_UP, data={"code": "unknown", "data": {}},
    )  # fmt: skip
    scene.admin.acts("accounts.notice", "send_again", notice.pk)
    notice.refresh_from_db()
    assert notice.mail == Notice.Mail.WAITING
