"""Pages of the URL map in a browser, in every look: a page that has no row here fails.

They have no serious fault for axe in light and dark, fit a small phone, work by keyboard, and load quickly.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.totp.internal import auth as totp
from django.conf import settings
from django.test import RequestFactory
from django.utils import timezone
from playwright.sync_api import Browser, BrowserContext, Page

from accounts.access import Actor
from accounts.credentials import ssh_keys, tokens
from accounts.credentials.sessions import SessionStore
from accounts.models import DeviceCode, Membership, User
from accounts.notices.models import Notice
from accounts.service_accounts import changing as service_accounts
from accounts.sign_on import second_factor, waiting
from monitoring.models import Alert, AlertDelivery, AlertMember, AlertRoute
from quotas.accounting import ledger
from quotas.models import Booking, Budget, Claim
from storage import connections
from storage.models import FilesSession, Snapshot, Volume
from tests.cast import Cast, make_cast
from tests.e2e import looks
from tests.e2e.browsing import signed_in
from tests.portal.addresses import ALL
from tests.sampling import rare
from tests.shared.class_rows import make_class
from tests.shared.job_rows import end_in_rows, make_job
from tests.shared.post_mortems.rows import make_post_mortem
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Phase

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.django_db(transaction=True),
]

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMeNzYQ3UTnSB1FYXV6w8yJYZVjrJ5Ps2JZz4zQmiTDr me@laptop"

# Person and path of each visit, by address of the URL map. bob has a workspace in every phase; victor is a viewer;
# erin is in no tenant; "half" has entered a password but no code yet, "new" a first password; "" is nobody.
PAGES: dict[str, list[tuple[str, str]]] = {
    "": [("bob", "/"), ("alice", "/?show=everyone"), ("carol", "/"), ("erin", "/")],
    "alerts/": [("admin", "/alerts/"), ("alice", "/alerts/?state=resolved"), ("bob", "/alerts/")],
    "alerts/<uuid:id>/": [("admin", "/alerts/{alert}/"), ("alice", "/alerts/{alert}/")],
    "alerts/routes/": [("admin", "/alerts/routes/"), ("alice", "/alerts/routes/")],
    "alerts/routes/<uuid:id>/": [("admin", "/alerts/routes/{route}/")],
    "api/docs/": [("bob", "/api/docs/")],
    "audit/": [("alice", "/audit/")],
    "add-ssh-key/": [("victor", "/add-ssh-key/")],
    "bookings/": [("bob", "/bookings/"), ("alice", "/bookings/")],
    "bookings/<uuid:id>/": [("alice", "/bookings/{booking}/"), ("bob", "/bookings/{booking}/")],
    "bookings/<uuid:id>/cancel/": [("alice", "/bookings/{booking}/cancel/")],
    "connections/": [("bob", "/connections/"), ("victor", "/connections/")],
    "connections/<uuid:id>/": [("bob", "/connections/{connection}/")],
    "device/": [("bob", "/device/"), ("bob", "/device/?code=BCDF-GHJK")],
    "first-run/": [("admin", "/first-run/")],
    "first-run/<slug:step>/": [("admin", f"/first-run/{step}/") for step in ("cluster", "tenant", "image")],
    "connections/<uuid:id>/delete/": [("bob", "/connections/{connection}/delete/")],
    "gpus/": [("bob", "/gpus/"), ("admin", "/gpus/")],
    "gpus/<slug:slug>/": [("bob", "/gpus/a100/")],
    "help/causes/": [("bob", "/help/causes/"), ("admin", "/help/causes/")],
    "help/guide/<slug:slug>/": [("bob", "/help/guide/user/")],
    "jobs/": [("bob", "/jobs/"), ("alice", "/jobs/?show=everyone&sort=name"), ("victor", "/jobs/")],
    "jobs/new/": [("bob", "/jobs/new/?again={sweep}"), ("victor", "/jobs/new/")],
    "jobs/<uuid:id>/": [("bob", "/jobs/{sweep}/"), ("victor", "/jobs/{failed-job}/")],
    "jobs/<uuid:id>/parts/": [
        ("bob", "/jobs/{sweep}/parts/"),
        ("victor", "/jobs/{sweep}/parts/?sort=-metrics.loss"),
    ],
    "jobs/<uuid:id>/activity/": [("bob", "/jobs/{failed-job}/activity/")],
    "jobs/<uuid:id>/settings/": [("bob", "/jobs/{sweep}/settings/")],
    "jobs/<uuid:id>/<str:verb>/": [("bob", "/jobs/{sweep}/cancel/")],
    "launch/": [("bob", "/launch/"), ("victor", "/launch/")],
    "notices/": [("bob", "/notices/")],
    "notices/settings/": [("bob", "/notices/settings/")],
    "post-mortems/": [("bob", "/post-mortems/"), ("alice", "/post-mortems/?show=everyone")],
    "post-mortems/<uuid:id>/": [
        ("bob", "/post-mortems/{post-mortem}/"),
        ("victor", "/post-mortems/{post-mortem}/"),
    ],
    "profile/": [("bob", "/profile/")],
    "profile/password/": [("bob", "/profile/password/")],
    "profile/second-factor/": [("bob", "/profile/second-factor/")],
    "sign-in/": [("", "/sign-in/")],
    "sign-in/code/": [("half", "/sign-in/code/")],
    "sign-in/password/": [("new", "/sign-in/password/")],
    "tenants/": [("bob", "/tenants/")],
    "tenants/<slug:slug>/": [("alice", "/tenants/demo/"), ("victor", "/tenants/demo/")],
    "tenants/<slug:slug>/members/<username:username>/remove/": [
        ("alice", "/tenants/demo/members/bob/remove/")
    ],
    "tenants/<slug:slug>/service-accounts/<uuid:id>/": [
        ("alice", "/tenants/demo/service-accounts/{service-account}/")
    ],
    "tenants/<slug:slug>/service-accounts/<uuid:id>/adopt/": [
        ("alice", "/tenants/demo/service-accounts/{service-account}/adopt/")
    ],
    "tenants/<slug:slug>/service-accounts/<uuid:id>/delete/": [
        ("alice", "/tenants/demo/service-accounts/{service-account}/delete/")
    ],
    "class-launches/": [("alice", "/class-launches/")],
    "class-launches/<uuid:id>/": [("alice", "/class-launches/{class}/")],
    "class-launches/<uuid:id>/<str:verb>/": [("alice", "/class-launches/{class}/stop/")],
    "idle/": [("alice", "/idle/"), ("victor", "/idle/?days=30"), ("bob", "/idle/?minutes=0")],
    "usage/": [("alice", "/usage/?group_by=user"), ("victor", "/usage/"), ("carol", "/usage/?from=soon")],
    "volumes/": [("bob", "/volumes/"), ("victor", "/volumes/?show=everyone")],
    "volumes/adopt/": [("admin", "/volumes/adopt/")],
    "volumes/<uuid:id>/": [
        ("bob", "/volumes/{volume}/"),
        ("victor", "/volumes/{volume}/"),
        ("bob", "/volumes/{adopted}/"),
    ],
    "volumes/<uuid:id>/delete/": [("bob", "/volumes/{volume}/delete/")],
    "volumes/<uuid:id>/files/": [("bob", "/volumes/{volume}/files/"), ("bob", "/volumes/{opening}/files/")],
    "volumes/<uuid:id>/files/delete/": [("bob", "/volumes/{volume}/files/delete/?path=runs/a.csv")],
    "volumes/<uuid:id>/files/rename/": [("bob", "/volumes/{volume}/files/rename/?path=runs/a.csv")],
    "volumes/<uuid:id>/snapshots/<uuid:snapshot>/delete/": [
        ("bob", "/volumes/{volume}/snapshots/{snapshot}/delete/")
    ],
    "workspaces/<uuid:id>/": [("bob", f"/workspaces/{{{phase}}}/") for phase in Phase],
    "workspaces/<uuid:id>/delete/": [("bob", "/workspaces/{ready}/delete/")],
    "workspaces/<uuid:id>/logs/": [("bob", "/workspaces/{ready}/logs/")],
    "workspaces/<uuid:id>/metrics/": [("bob", "/workspaces/{ready}/metrics/")],
    "workspaces/<uuid:id>/settings/": [("bob", "/workspaces/{ready}/settings/")],
    "workspaces/<uuid:id>/<str:verb>/": [("bob", "/workspaces/{ready}/stop/")],
}
ERRORS = [("bob", "/nowhere/"), ("bob", "/audit/")]  # 404; 403
# Addresses that are no pages: they change something, redirect, return a part of a page, or serve programs.
NOT_READ = {
    "alerts/<uuid:id>/<str:verb>/",
    "alerts/routes/<uuid:id>/<str:verb>/",
    "bookings/answer/",
    "api/schema/",
    "class-launches/<uuid:id>/collect/",
    "class-launches/<uuid:id>/people/",
    "healthz",
    "jobs/bulk/",
    "jobs/new/answer/",
    "jobs/<uuid:id>/stop-rest/",  # a question after a form: tests/jobs/pages/test_parts.py
    "launch/answer/",
    "launch/templates/",
    "launch/templates/<uuid:id>/delete/",
    "metrics",
    "workspaces/bulk/",
    "workspaces/<uuid:id>/instead/",
    "notices/<uuid:id>/",
    "notices/read/",
    "notices/unsubscribe/<str:token>/",  # its page needs a signed address: tests/accounts/test_notices_mail.py
    "profile/connect/",
    "profile/connect-directory/",
    "ssh/config/",  # a file
    "profile/language/",
    "profile/preferences/",
    "profile/second-factor/recovery-codes/",
    "profile/second-factor/remove/",
    "profile/sign-out-everywhere/",
    "profile/ssh-keys/",
    "profile/ssh-keys/<uuid:id>/remove/",
    "profile/tokens/",
    "profile/tokens/<uuid:id>/revoke/",
    "readyz",
    "readyz/web",
    "sign-in/oidc/",
    "sign-in/oidc/callback/",
    "sign-in/set-up/",
    "sign-out/",
    "tenant/",
    "tenants/<slug:slug>/members/",
    "tenants/<slug:slug>/service-accounts/",
    "tenants/<slug:slug>/service-accounts/<uuid:id>/tokens/<uuid:token_id>/revoke/",
    "tenants/<slug:slug>/members/<username:username>/",
    "theme/",
    "volumes/<uuid:id>/clone/",
    "volumes/<uuid:id>/confirm/",
    "volumes/<uuid:id>/inspect/",
    "volumes/<uuid:id>/files/close/",
    "volumes/<uuid:id>/files/folder/",
    "volumes/<uuid:id>/main/",
    "volumes/<uuid:id>/publish/",
    "volumes/<uuid:id>/restore/",
    "volumes/<uuid:id>/snapshot/",
    "volumes/<uuid:id>/transfer/",
    "workspaces/<uuid:id>/apps/",
    "workspaces/<uuid:id>/apps/<int:port>/",
    "workspaces/<uuid:id>/apps/<int:port>/open/",
    "workspaces/<uuid:id>/clone/",
    "workspaces/<uuid:id>/gauges/",
    "workspaces/<uuid:id>/open/",
    "workspaces/<uuid:id>/schedule/",
    "workspaces/<uuid:id>/shares/",
    "workspaces/<uuid:id>/shares/<uuid:share>/end/",
    "workspaces/sparklines/",
}
LANGUAGES = [code if code == "en" else rare(code) for code, _name in settings.LANGUAGES]
EVERY_LOOK = [place for places in PAGES.values() for place in places] + ERRORS


def test_every_page_of_the_url_map_is_looked_at() -> None:
    named = {address.name for address in ALL if not address.name.startswith(("api/v1/", "admin/"))}
    assert set(PAGES) | NOT_READ == named


def alarmed(cast: Cast) -> dict[str, str]:
    """An alert of demo with two members, and a message by a route that failed once."""
    now = timezone.now()
    times = {"since": now, "last_at": now, "round_at": now}
    alert = Alert.objects.create(
        tenant=cast.demo, cluster=cast.cluster, group="x", code="volume_nearly_full", data={"percent": 95},
        severity=3, count=2, open_count=1, pools=[str(cast.pool.pk)], **times,
    )  # fmt: skip
    for number in range(2):
        AlertMember.objects.create(
            alert=alert, key=f"x{number}", code=alert.code, data=alert.data, severity=3, since=now,
            name=f"berth-demo/home-{number}", ended_at=now if number else None,
        )  # fmt: skip
    route = AlertRoute.objects.create(
        name="night",
        way="webhook",
        tenant=cast.demo,
        address="x",
        host="hook.example.org",
        escalates_after_minutes=15,
    )
    AlertDelivery.objects.create(
        alert=alert, route=route, occasion="firing", attempts=2, due_at=now + timedelta(minutes=1),
        status_code=503, error="The receiver answered 503.",
    )  # fmt: skip
    return {"alert": str(alert.pk), "route": str(route.pk)}


class Stage:
    """Browser windows of all people at one portal, in one language."""

    def __init__(self, browser: Browser, address: str, language: str) -> None:
        self.cast = make_cast()
        self.people = people_of(self.cast, language)
        furnished = furnish(self.cast)
        self.ids = {str(phase): str(one.pk) for phase, one in furnished.items()}
        service_account = service_accounts.create(self.cast.alice, tenant="demo", name="ci", role="member")
        self.ids["service-account"] = str(service_account.pk)
        self.ids["post-mortem"] = str(make_post_mortem(furnished[Phase.FAILED]).pk)
        self.ids["class"] = str(make_class(self.cast, *furnished.values()).pk)
        self.ids["booking"] = str(booked(self.cast).pk)
        soon = timezone.now() + timedelta(hours=1)
        waits = {"name": "berth on laptop", "scopes": ["read", "workspaces"], "expires_at": soon}
        DeviceCode.objects.create(digest="x", user_code="BCDFGHJK", **waits)
        volume = kept(self.cast)
        self.ids |= {"volume": str(volume.pk), "snapshot": str(copied(volume).pk)}
        self.ids["adopted"] = str(adopted(self.cast).pk)
        values = {"name": "store", "endpoint": "https://s3.example.org", "bucket": "data"}
        made = connections.create(self.cast.bob, "demo", values | dict.fromkeys(connections.KEYS, "key"))
        self.ids["connection"] = str(made.pk)
        self.ids |= trained(self.cast)
        self.ids |= alarmed(self.cast)
        self.ids["opening"] = str(opening(self.cast).pk)
        self.options = {
            "color_scheme": "light",
            "reduced_motion": "reduce",
            "viewport": looks.DESK,
            "locale": language,
        }
        self.browser, self.address = browser, address
        self.windows: dict[str, BrowserContext] = {}

    def open(self, who: str, path: str) -> Page:
        page = self.window(who).new_page()
        page.add_init_script(looks.WATCH_LOADING)
        page.complaints = looks.complaints(page)  # type: ignore[attr-defined]
        page.goto(path.format(**self.ids), wait_until="load")
        return page

    def window(self, who: str) -> BrowserContext:
        if who not in self.windows:
            user = self.people.get(who)
            self.windows[who] = signed_in(self.browser, self.address, user, **self.options)
            self.windows[who].route_web_socket(
                "**/ws/**", lambda _socket: None
            )  # nothing may change during a measurement
            if who == "half":
                self.windows[who].add_cookies([self.half_signed_in(with_a_code())])
            if who == "new":
                self.windows[who].add_cookies([self.half_signed_in(with_a_first_password())])
        return self.windows[who]

    def half_signed_in(self, person: User) -> Any:
        request = RequestFactory().get("/")
        request.session = SessionStore()
        waiting.hold(request, person, "/", code_given=False, how="password", typed="")
        request.session.save()
        return {
            "name": settings.SESSION_COOKIE_NAME,
            "value": request.session.session_key,
            "url": self.address,
        }

    def close(self) -> None:
        for window in self.windows.values():
            window.close()


def kept(cast: Cast) -> Volume:
    """Create a volume of bob's that could not grow, and one in his bin; return the former."""
    common = {"tenant": cast.demo, "owner": cast.bob.user, "cluster": cast.cluster, "requested_mib": 4096}
    soon = timezone.now() + timedelta(days=5)
    Volume.objects.create(**common, name="old", kind="disk", phase="in_bin", bin_until=soon)
    rule = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["gpu-1"]}
    return Volume.objects.create(
        **common,
        name="images of the second survey",
        kind="dataset",
        phase="growing",
        size_mib=2048,
        problem="growth_failed",
        problem_data={"raw": "no room"},
        affinity={"nodeSelectorTerms": [{"matchExpressions": [rule]}]},
        storage_class="net-shared",
        access="rwx",
        bound_to="pvc-1",
        driver="net.devcluster.local",
    )


def adopted(cast: Cast) -> Volume:
    """Create a volume of bob's that was there before, and that he has not confirmed yet."""
    common = {"tenant": cast.demo, "owner": cast.bob.user, "cluster": cast.cluster, "requested_mib": 4096}
    names = [
        "checkpoints/",
        "labels.csv",
        "메모.txt",
        "a name that is longer than a phone is wide, by far.tar.gz",
    ]
    figures = {"file_system": "ext4", "size_mib": 4001, "used_mib": 1200, "uid": 1000, "more": 7}
    found = figures | {"names": names, "unreadable": False}
    state = {"phase": "ready", "adoption": "read_only", "inspection": found, "bound_to": "pv-7"}
    return Volume.objects.create(**common, **state, name="surveys of 2019", kind="dataset", access="rwx")


def opening(cast: Cast) -> Volume:
    """Create a volume of bob's whose files do not open."""
    common = {"tenant": cast.demo, "owner": cast.bob.user, "cluster": cast.cluster, "requested_mib": 4096}
    volume = Volume.objects.create(**common, name="scans", kind="dataset", phase="ready", access="rwx")
    raw = {"raw": "berth:1: not found"}
    FilesSession.objects.create(
        volume=volume, by=cast.bob.user, writes=True, problem="image_not_found", problem_data=raw
    )
    return volume


def trained(cast: Cast) -> dict[str, str]:
    """Create a sweep of bob's that waits, and a job of his that failed at its second attempt."""
    sweep = make_job(
        cast, cast.bob, "a sweep", sweep={"lr": [0.1, 0.01, 0.001], "seed": [1, 2]}, parallelism=2
    )
    for index, loss in enumerate((0.4, 0.1, 0.2)):
        sweep.parts.filter(index=index).update(metrics={"loss": loss, "accuracy": 1 - loss})
    failed = make_job(
        cast,
        cast.bob,
        "a-job-of-a-name-that-is-as-long-as-people-like",
        script="#!/bin/sh\nfalse",
        command=[],
    )
    end_in_rows(failed, attempts=2)
    return {"sweep": str(sweep.pk), "failed-job": str(failed.pk)}


def copied(volume: Volume) -> Snapshot:
    """Create a version of the volume and a snapshot that failed; return the former."""
    common = {"volume": volume, "by": volume.owner}
    raw = {"raw": "no room"}
    Snapshot.objects.create(**common, phase="failed", problem="snapshot_failed", problem_data=raw)
    return Snapshot.objects.create(
        **common, phase="ready", number=1, note="labels of the first survey", size_mib=2048
    )


def with_a_code() -> User:
    dave = User.objects.create_user("dave", password="dave-password")
    secret = second_factor.new_secret()
    second_factor.turn_on(
        dave, secret, totp.format_hotp_value(totp.hotp_value(secret, int(time.time()) // 30))
    )
    return dave


def with_a_first_password() -> User:
    return User.objects.create_user("nora", password="nora-password", password_is_first=True)


def people_of(cast: Cast, language: str) -> dict[str, User]:
    erin = User.objects.create_user("erin", "erin@example.org", "erin-password")
    Membership.objects.create(tenant=cast.second, user=cast.bob.user, role="viewer")
    actors: list[Actor] = [cast.alice, cast.bob, cast.victor, cast.carol, cast.admin, Actor(erin)]
    if language != "en":
        User.objects.update(language=language)
    return {actor.user.username: actor.user for actor in actors}


def furnish(cast: Cast) -> dict[Phase, Any]:
    """Create rows of everything that pages show; return bob's workspaces by phase."""
    ssh_keys.add(cast.bob, "laptop", KEY)
    tokens.issue(cast.bob.user, "nightly", ["read"], None, 30)
    apps = [{"name": "TensorBoard", "port": 6006, "shared_with": "tenant"}]
    made = {phase: make_workspace(cast, cast.bob, phase, name=f"is-{phase}", apps=apps) for phase in Phase}
    make_workspace(cast, cast.alice, Phase.WAITING, name="a-name-as-long-as-people-like-them-to-be")
    Notice.objects.filter(user=cast.bob.user).update(read_at=None)
    spend(cast)
    return made


def spend(cast: Cast) -> None:
    """Create GPU-hours of some days, and two budgets, of which one is spent."""
    began = timezone.now() - timedelta(days=9)
    Claim.objects.filter(state=Claim.State.ADMITTED).update(admitted_at=began)
    ledger.settle_due()
    Budget.objects.create(tenant=cast.demo, gpu_hours=10_000)
    Budget.objects.create(tenant=cast.demo, user=cast.bob.user, gpu_hours=10)


def booked(cast: Cast) -> Booking:
    """Create a booking of demo and one of the other tenant; return the former."""
    starts_at, ends_at = (timezone.now() + timedelta(hours=hours) for hours in (1, 5))
    _, ours = (
        Booking.objects.create(
            pool=cast.pool,
            tenant=tenant,
            created_by=cast.alice.user,
            title=title,
            starts_at=starts_at,
            ends_at=ends_at,
            units_each=1,
        )
        for tenant, title in (
            (cast.second, "exam"),
            (cast.demo, "a class of a title that is as long as people like"),
        )
    )
    return ours


@pytest.fixture
def stage(browser: Browser, address: str, request: pytest.FixtureRequest) -> Iterator[Stage]:
    stage = Stage(browser, address, getattr(request, "param", "en"))
    yield stage
    stage.close()


def wrong_with(page: Page) -> list[str]:
    """Return what is wrong with the page, in light at a desk and in dark on the smallest phone."""
    wrong = looks.structure(page) + looks.loading(page) + looks.faults(page) + looks.keyboard(page)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    page.set_viewport_size(looks.SMALLEST)
    wrong += looks.overflow(page) + looks.faults(page, ["color-contrast"])
    return wrong + [text for text in page.complaints if not text.startswith("Failed to load resource")]  # type: ignore[attr-defined]


def report(stage: Stage, places: list[tuple[str, str]]) -> str:
    """Return what is wrong, one line per page."""
    found = ""
    for who, path in places:
        page = stage.open(who, path)
        found += "".join(f"\n{who or 'nobody'} {path}: {wrong}" for wrong in wrong_with(page))
        page.close()
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("stage", LANGUAGES, indirect=True)
def test_every_page_is_for_everybody_in_every_state_and_language(stage: Stage) -> None:
    assert report(stage, EVERY_LOOK) == ""
