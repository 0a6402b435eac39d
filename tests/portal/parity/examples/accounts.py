"""Examples of what people do with their own account, and owners with their tenant."""

from __future__ import annotations

from accounts.models import Membership, Role
from tests.cast import KEY
from tests.portal.parity.book import example
from tests.portal.parity.scene import Scene
from tests.shared.clients import browser
from tests.shared.workspace_rows import make_workspace

TOKEN = {"name": "nightly", "scopes": ["read"]}
MEMBERS = "tenants/demo/members/"
IN_ADMIN = ("accounts.tenant change", "accounts.user change")


@example("PATCH me/", "theme/")
def a_theme(scene: Scene) -> None:
    scene.alice.api("PATCH me/", {"theme": "dark"})
    assert scene.alice.get("me/")["theme"] == "dark"


@example("PATCH me/", "profile/preferences/", "profile/language/")
def language_and_time_zone(scene: Scene) -> None:
    wanted = {"language": "ko", "time_zone": "Asia/Seoul"}
    scene.alice.api("PATCH me/", wanted)
    assert wanted.items() <= scene.alice.get("me/").items()


@example("DELETE me/sessions/", "profile/sign-out-everywhere/")
def an_end_of_all_sessions(scene: Scene) -> None:
    session = browser(scene.cast.alice)
    assert session.get("/profile/").status_code == 200
    scene.alice.api("DELETE me/sessions/")
    assert session.get("/profile/").status_code == 302


@example("POST ssh-keys/", "profile/ssh-keys/", "add-ssh-key/")
def an_ssh_key(scene: Scene) -> None:
    scene.alice.api("POST ssh-keys/", {"name": "laptop", "public_key": KEY})
    [key] = scene.alice.list("ssh-keys/")
    assert key["name"] == "laptop"


@example("DELETE ssh-keys/<uuid:id>/", "profile/ssh-keys/<uuid:id>/remove/")
def an_ssh_key_is_removed(scene: Scene) -> None:
    made = scene.alice.api("POST ssh-keys/", {"name": "laptop", "public_key": KEY})
    scene.alice.api(f"DELETE ssh-keys/{made['id']}/")
    assert scene.alice.list("ssh-keys/") == []


@example("POST tokens/", "profile/tokens/")
def a_token(scene: Scene) -> None:
    made = scene.alice.api("POST tokens/", TOKEN)
    assert "nightly" in {one["name"] for one in scene.alice.list("tokens/")}
    assert made["secret"].startswith("brt_")


@example("DELETE tokens/<uuid:id>/", "profile/tokens/<uuid:id>/revoke/")
def a_token_is_revoked(scene: Scene) -> None:
    made = scene.alice.api("POST tokens/", TOKEN)
    scene.alice.api(f"DELETE tokens/{made['id']}/")
    assert "nightly" not in {one["name"] for one in scene.alice.list("tokens/")}


@example(
    "POST tenants/<slug:slug>/members/", "tenants/<slug:slug>/members/", "accounts.user accounts_user_import", *IN_ADMIN
)  # fmt: skip
def a_member(scene: Scene) -> None:
    scene.alice.api(f"POST {MEMBERS}", {"username": "carol", "role": "viewer"})
    assert roles(scene)["carol"] == "viewer"


@example(
    "PATCH tenants/<slug:slug>/members/<username:username>/",
    "tenants/<slug:slug>/members/<username:username>/",
    *IN_ADMIN,
)
def another_role(scene: Scene) -> None:
    scene.alice.api(f"PATCH {MEMBERS}bob/", {"role": "viewer"})
    assert roles(scene)["bob"] == "viewer"


@example(
    "DELETE tenants/<slug:slug>/members/<username:username>/",
    "tenants/<slug:slug>/members/<username:username>/remove/",
    *IN_ADMIN,
)
def a_member_is_removed(scene: Scene) -> None:
    scene.alice.api(f"DELETE {MEMBERS}bob/")
    assert "bob" not in roles(scene)


def roles(scene: Scene) -> dict[str, str]:
    return {one["username"]: one["role"] for one in scene.alice.list(MEMBERS)}


@example("POST service-accounts/", "tenants/<slug:slug>/service-accounts/")
def a_service_account(scene: Scene) -> None:
    made = service_account(scene)
    assert scene.alice.get(made)["username"] == "svc.demo.ci"


@example("POST service-accounts/<uuid:id>/tokens/", "tenants/<slug:slug>/service-accounts/<uuid:id>/")
def a_token_of_a_service_account(scene: Scene) -> None:
    made = service_account(scene)
    scene.alice.api(f"POST {made}tokens/", TOKEN)
    assert [one["name"] for one in scene.alice.list(f"{made}tokens/")] == ["nightly"]


@example(
    "DELETE service-accounts/<uuid:id>/tokens/<uuid:token_id>/",
    "tenants/<slug:slug>/service-accounts/<uuid:id>/tokens/<uuid:token_id>/revoke/",
)
def a_token_of_a_service_account_is_revoked(scene: Scene) -> None:
    made = service_account(scene)
    token = scene.alice.api(f"POST {made}tokens/", TOKEN)
    scene.alice.api(f"DELETE {made}tokens/{token['id']}/")
    assert scene.alice.list(f"{made}tokens/") == []


@example("POST service-accounts/<uuid:id>/adopt/", "tenants/<slug:slug>/service-accounts/<uuid:id>/adopt/")
def a_service_account_is_adopted(scene: Scene) -> None:
    made = service_account(scene)
    Membership.objects.filter(user__username="bob").update(role=Role.OWNER)
    assert scene.bob.api(f"POST {made}adopt/")["responsible"] == "bob"
    assert scene.alice.get(made)["responsible"] == "bob"


@example("DELETE service-accounts/<uuid:id>/", "tenants/<slug:slug>/service-accounts/<uuid:id>/delete/")
def a_service_account_is_deleted(scene: Scene) -> None:
    scene.alice.api(f"DELETE {service_account(scene)}")
    assert scene.alice.list("service-accounts/") == []


def service_account(scene: Scene) -> str:
    """Create one. Return its address."""
    made = scene.alice.api("POST service-accounts/", {"tenant": "demo", "name": "ci"})
    return f"service-accounts/{made['id']}/"


@example("POST notices/read/", "notices/read/")
def all_notices_are_read(scene: Scene) -> None:
    make_workspace(scene.cast, scene.cast.alice)
    assert scene.alice.list("notices/?unread=true")
    scene.alice.api("POST notices/read/")
    assert scene.alice.list("notices/?unread=true") == []


@example("PATCH notices/preferences/", "notices/settings/", "notices/unsubscribe/<str:token>/")
def notices_by_mail(scene: Scene) -> None:
    wanted = {"kind": "failed", "in_berth": True, "by_mail": False}
    assert wanted not in scene.alice.list("notices/preferences/")
    scene.alice.api("PATCH notices/preferences/", {"results": [wanted]})
    assert wanted in scene.alice.list("notices/preferences/")
