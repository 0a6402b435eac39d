"""People of the access matrices, and objects that belong to one of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import time, timedelta
from typing import Any

from django.conf import settings
from django.test import Client
from django.utils import timezone

from accounts.access import Actor
from accounts.announcements.models import Announcement
from accounts.credentials import ssh_keys, tokens
from accounts.models import Membership, Role, User
from accounts.notices.kinds import Kind
from accounts.notices.models import Notice
from accounts.notices.preferences import unsubscribe_url
from accounts.service_accounts import changing as service_accounts
from monitoring.models import Alert, AlertRoute
from quotas.models import Booking, Budget, TenantLimit
from storage import connections
from storage.models import Snapshot, Volume
from tests.cast import make_cast
from tests.shared.class_rows import make_class
from tests.shared.job_rows import make_job
from tests.shared.post_mortems.rows import make_post_mortem
from tests.shared.workspace_rows import make_workspace
from workloads.logs.models import LogLimit
from workspaces.models import Share, ShareRole, Template
from workspaces.runs import schedule

OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0nG1CQvKjZlTLpVt6vLkYxWlJ3Yc1rOq4i6dK4nq0z of-bob"
PEOPLE = ("own", "viewer", "member", "owner", "admin", "stranger")
# Members like "member", with whom bob's workspace is shared.
SHARERS = {"sharer-look": ShareRole.LOOK, "sharer-work": ShareRole.WORK}
NOBODYS = "00000000-0000-4000-8000-000000000000"
NOWHERE = {
    "id": NOBODYS,
    "slug": "nothing",
    "digest": "0" * 64,
    "username": "nobody",
    "snapshot": NOBODYS,
    "step": "nowhere",
    "port": "6006",
    "share": NOBODYS,
    "token_id": NOBODYS,
    "name": "nowhere",
    "of": "quotas.nothing",
    "action": "nothing",
}
TOMORROW = timezone.now() + timedelta(days=1)


@dataclass(frozen=True)
class Stage:
    """People, the ids of bob's objects, and, once people are signed in, their secrets and sessions."""

    people: dict[str, Actor]
    demo: Any
    second: Any
    ids: dict[str, dict[str, str]]
    secrets: dict[str, str] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)

    def script(self, who: str) -> Client:
        return Client(headers={"Authorization": f"Bearer {self.secrets[who]}"})

    def browser(self, who: str) -> Client:
        client = Client()
        client.cookies[settings.SESSION_COOKIE_NAME] = self.sessions[who]
        return client

    def ids_for(self, name: str) -> dict[str, str]:
        return self.ids[next((kind for kind in self.ids if f"{kind}s/" in name), "workspace")]


def make_stage() -> Stage:
    cast = make_cast()
    dora = Actor(User.objects.create_user("dora", "dora@example.org", "dora-password"))
    Membership.objects.create(tenant=cast.demo, user=dora.user, role=Role.MEMBER)
    Membership.objects.create(tenant=cast.second, user=cast.bob.user, role=Role.MEMBER)
    people = dict(zip(PEOPLE, (cast.bob, cast.victor, dora, cast.alice, cast.admin, cast.carol), strict=True))
    for name in SHARERS:
        people[name] = Actor(User.objects.create_user(name, f"{name}@example.org", "a-password"))
        Membership.objects.create(tenant=cast.demo, user=people[name].user, role=Role.MEMBER)
    token = unsubscribe_url(cast.bob.user, Kind.QUOTA).rstrip("/").rpartition("/")[2]
    app = {"name": "TensorBoard", "port": 6006, "shared_with": "me"}
    common = {"name": "gpu-1", "of": "quotas.pool", "action": "close"}
    common |= {
        "slug": "demo",
        "username": "bob",
        "verb": "stop",
        "token": token,
        "step": "image",
        "digest": "1" * 64,
    }
    common |= {"cluster": "main", "pool": "a100", "flavor": "a100-1", "image": "jupyter"}
    TenantLimit.objects.create(tenant=cast.demo)
    LogLimit.objects.create(tenant=cast.demo)
    for user in (None, cast.bob.user):
        Budget.objects.create(tenant=cast.demo, user=user, gpu_hours=1000)
    workspace = make_workspace(cast, cast.bob, apps=[app])
    for name, role in SHARERS.items():
        shared = {"workspace": workspace, "user": people[name].user, "given_by": cast.bob.user}
        common["share"] = str(Share.objects.create(**shared, role=role).pk)
    schedule.put(cast.bob, workspace, start=time(9), stop=time(18), days=[1], time_zone="Europe/Berlin")
    notice = Notice.objects.create(
        user=cast.bob.user,
        kind="ready",
        subject="workspace",
        subject_id=workspace.pk,
        data={"code": "ready", "data": {}},
        in_berth=True,
    )
    booking = Booking.objects.create(
        pool=cast.pool,
        tenant=cast.demo,
        created_by=cast.bob.user,
        title="class",
        starts_at=TOMORROW,
        ends_at=TOMORROW + timedelta(hours=1),
        units_each=1,
    )
    volume = Volume.objects.create(
        tenant=cast.demo,
        owner=cast.bob.user,
        cluster=cast.cluster,
        name="data",
        kind="dataset",
        requested_mib=1024,
        bound_to="pvc-1",
    )
    snapshot = Snapshot.objects.create(volume=volume, by=cast.bob.user, phase="ready")
    keys = {"access_key": "AK", "secret_key": "sk"}
    connection = connections.create(
        cast.bob, "demo", {"name": "store", "endpoint": "https://s3.example.org", "bucket": "data"} | keys
    )
    common["snapshot"] = str(snapshot.pk)
    common["port"] = "6006"
    now = timezone.now()
    alert = Alert.objects.create(
        tenant=cast.demo,
        group="x",
        code="volume_nearly_full",
        data={"percent": 95},
        severity=2,
        since=now,
        last_at=now,
        round_at=now,
    )
    route = AlertRoute.objects.create(
        name="hook", way="webhook", tenant=cast.demo, address="x", host="x.test"
    )
    template = Template.objects.create(
        tenant=cast.demo, name="week", body={"image": "jupyter", "flavor": "a100-1"}, created_by=cast.bob.user
    )
    announcement = Announcement.objects.create(text="New GPUs")
    account = service_accounts.create(cast.alice, tenant="demo", name="ci", role="member")
    service_token, _secret = service_accounts.create_token(cast.alice, account, "ci", ["read"], 1)
    ids = {
        "service-account": str(account.pk),
        "class-launche": str(make_class(cast, workspace).pk),  # in "class-launches/"
        "announcement": str(announcement.pk),
        "alerts/route": str(route.pk),
        "alert-route": str(route.pk),
        "alert": str(alert.pk),
        "volume": str(volume.pk),
        "job": str(make_job(cast, cast.bob).pk),
        "connection": str(connection.pk),
        "workspace": str(workspace.pk),
        "booking": str(booking.pk),
        "notice": str(notice.pk),
        "template": str(template.pk),
        "post-mortem": str(make_post_mortem(workspace).pk),
        "ssh-key": str(ssh_keys.add(cast.bob, "laptop", OTHER_KEY).pk),
        "token": str(tokens.issue(cast.bob.user, "laptop", ["read"])[0].pk),
    }
    objects = {kind: {"id": found, **common} for kind, found in ids.items()}
    objects["job"]["verb"] = "cancel"
    objects["service-account"]["token_id"] = str(service_token.pk)
    objects["alert"]["verb"], objects["alerts/route"]["verb"] = "acknowledge", "test"
    return Stage(people, cast.demo, cast.second, objects)
