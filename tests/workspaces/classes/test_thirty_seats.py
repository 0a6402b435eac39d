"""A class of thirty from one list, on a simulated cluster: all that can are ready, and who cannot is named."""

from __future__ import annotations

from time import monotonic

import pytest

from accounts.models import Membership, Role, User
from clusters.models import Cluster
from quotas import admission
from quotas.models import Flavor, TenantLimit
from storage.models import Volume
from tests.cast import Cast
from tests.shared.clients import ask, script
from tests.shared.looking import PlayedMirror, look
from tests.shared.played_api import PlayedApi
from tests.shared.workspace_rows import make_pool
from workspaces import enqueue
from workspaces.models import Workspace

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

PEOPLE = [f"student-{number}" for number in range(1, 30)]


def make_class(cast: Cast) -> None:
    """Make 29 members, of whom the last has no storage left, and a pool with room for 30."""
    users = User.objects.bulk_create(User(username=name) for name in PEOPLE)
    Membership.objects.bulk_create(
        Membership(tenant=cast.demo, user=user, role=Role.MEMBER) for user in users
    )
    pool = make_pool(cast, "lab", gpus=30, quota=30)
    Flavor.objects.create(slug="seat", name="Seat", pool=pool, units=1, cpu_millicores=1000, memory_mib=4096)
    home_mib = Cluster.objects.get().home_mib
    TenantLimit.objects.create(tenant=cast.demo, person_storage_mib=home_mib + 64)
    Volume.objects.create(
        tenant=cast.demo, owner=users[-1], cluster=cast.cluster, name="big", kind="dataset", requested_mib=128
    )


def all_ready(cast: Cast, api: PlayedApi) -> None:
    """Let queue and cluster work until all are ready."""
    mirror = PlayedMirror(api)
    waiting = Workspace.objects.exclude(phase="ready")
    for _ in range(30):
        if not (ids := list(waiting.values_list("pk", flat=True))):
            return
        admission.admit(waiting.values_list("pool", flat=True)[0])
        enqueue.reconcile(ids)
        for pk in ids:
            look(pk, mirror)
        api.settle()
    pytest.fail(f"not ready: {list(waiting.values_list('name', 'phase', 'message_code'))}")


def test_28_of_30_are_ready_two_refusals_are_named_and_nothing_is_made_twice(cast: Cast) -> None:
    make_class(cast)
    client, begun = script(cast.alice), monotonic()
    launch = {"image": "jupyter", "flavor": "seat"}
    sent = {"tenant": "demo", "name": "ml", "launch": launch, "people": [*PEOPLE, "nobdy"]}
    answer = ask(client, "POST", "class-launches/", sent).json()
    asked = monotonic() - begun
    refused = {one["person"]: one["problem"]["code"] for one in answer["people"] if one["problem"]}
    assert refused == {"student-29": "above_person_storage_limit", "nobdy": "not_a_member"}

    all_ready(cast, PlayedApi())
    last = monotonic() - begun
    seen = ask(client, "GET", f"class-launches/{answer['id']}/").json()
    assert (seen["counts"]["ready"], seen["counts"]["problems"]) == (28, 2)
    assert seen["counts"]["last_ready_at"] is not None

    again = ask(client, "POST", "class-launches/", sent).json()
    assert again["people"] == seen["people"] and Workspace.objects.count() == 28
    print(f"28 requested in {asked:.1f} s, the last ready after {last:.1f} s")
