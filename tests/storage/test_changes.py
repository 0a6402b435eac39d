"""Rules of volumes: who may what, names, sizes and the limit of the tenant."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.errors import Conflict, Invalid, NotAllowed, NotThere, Refusal
from accounts.models import AuditEntry, Role, Tenant
from accounts.notices.models import Notice
from clusters.models import Cluster
from quotas.allowed.storage import storage_of
from quotas.models import TenantLimit
from storage import access, changes, notices
from storage.models import Volume
from tests.cast import Cast
from tests.shared.concurrency import at_once
from tests.shared.datasets import dataset

pytestmark = [pytest.mark.django_db]


def create(cast: Cast, actor: Any = None, **wish: Any) -> Volume:
    wanted = {"name": "data", "kind": "dataset", "size_mib": 1024, **wish}
    return changes.create(actor or cast.alice, "demo", changes.Wish(**wanted))


def refused(call: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(Refusal) as refusal:
        call(*args, **kwargs)
    return refusal.value.code


def test_members_create_and_others_do_not(cast: Cast) -> None:
    assert create(cast, cast.bob).owner == cast.bob.user
    assert refused(create, cast, cast.victor) == "viewer_only_looks"
    with pytest.raises(NotThere):
        create(cast, cast.carol)


def test_a_name_is_taken_once_per_person_and_free_again_in_the_bin(cast: Cast) -> None:
    first = create(cast)
    create(cast, cast.bob)
    assert refused(create, cast) == "name_taken"
    changes.delete(cast.alice, first)
    second = create(cast)
    assert refused(changes.restore, cast.alice, first) == "name_taken"
    changes.change(cast.alice, second, {"name": "other"})
    assert changes.restore(cast.alice, changes.fresh(first))


@pytest.mark.parametrize(
    ("wish", "code", "field"),
    [
        ({"name": " data"}, "invalid", "name"),
        ({"name": "a/b"}, "invalid", "name"),
        ({"size_mib": 1}, "invalid", "size_mib"),
        ({"cluster": "nowhere"}, "invalid", "cluster"),
        ({"kind": "home"}, "made_by_itself", "kind"),
        ({"kind": "scratch", "shared": "read"}, "is_scratch", "kind"),
    ],
)
def test_faulty_wishes_name_the_field(cast: Cast, wish: dict[str, Any], code: str, field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        create(cast, **wish)
    assert (refusal.value.code, list(refusal.value.fields)) == (code, [field])


def test_the_cluster_has_to_be_named_where_there_are_several(cast: Cast) -> None:
    Cluster.objects.create(slug="other", name="Other")
    assert refused(create, cast) == "invalid"
    assert create(cast, cluster="main").cluster.slug == "main"


def test_the_limit_counts_volumes_also_in_the_bin(cast: Cast) -> None:
    TenantLimit.objects.create(tenant=cast.demo, storage_mib=2048)
    demo = Tenant.objects.get(pk=cast.demo.pk)
    volume = create(cast)
    changes.delete(cast.alice, volume)
    assert storage_of([demo.pk])[demo.pk]["storage_mib"] == 1024
    assert refused(create, cast, size_mib=1025) == "above_storage_limit"
    second = create(cast)
    assert refused(changes.change, cast.alice, second, {"size_mib": 1025}) == "above_storage_limit"


@pytest.mark.django_db(transaction=True)
def test_two_at_once_do_not_pass_the_limit_together(cast: Cast) -> None:
    TenantLimit.objects.create(tenant=cast.demo, storage_mib=1500)

    def ask(number: int) -> str:
        try:
            create(cast, (cast.alice, cast.bob)[number])
        except Refusal as refusal:
            return refusal.code
        return "created"

    assert sorted(at_once(ask, 2)) == ["above_storage_limit", "created"]


def test_a_volume_grows_and_never_shrinks(cast: Cast) -> None:
    volume = create(cast)
    assert changes.change(cast.alice, volume, {"size_mib": 2048})
    assert not changes.change(cast.alice, volume, {"size_mib": 2048})
    assert refused(changes.change, cast.alice, volume, {"size_mib": 1024}) == "cannot_shrink"
    Volume.objects.update(can_grow=False)
    assert refused(changes.change, cast.alice, volume, {"size_mib": 4096}) == "cannot_grow"


def test_all_of_a_change_or_nothing(cast: Cast) -> None:
    volume = create(cast)
    assert refused(changes.change, cast.alice, volume, {"name": "new", "size_mib": 64}) == "cannot_shrink"
    assert changes.fresh(volume).name == "data"


def test_a_new_owner_is_notified_until_they_hand_it_on(cast: Cast) -> None:
    volume = dataset(cast, "data")
    assert changes.transfer(cast.admin, volume, "bob")
    (notice,) = Notice.objects.all()
    assert (notice.user, notice.kind) == (cast.bob.user, "volume")
    words = notices.describe(cast.bob.user, [notice])[notice.pk]
    assert (words.path, words.is_past) == (f"/volumes/{volume.pk}/", False)
    assert "admin" in words.text
    volume.refresh_from_db()
    assert changes.transfer(cast.bob, volume, "alice")
    assert notices.describe(cast.bob.user, [notice])[notice.pk].is_past


def test_who_takes_a_volume_needs_no_notice(cast: Cast) -> None:
    assert changes.transfer(cast.alice, dataset(cast, "data", owner=cast.bob.user), "alice")
    assert not Notice.objects.exists()


def test_handing_on_needs_somebody_who_can_have_it(cast: Cast) -> None:
    volume = create(cast, cast.bob)
    for username in ("victor", "carol", "nobody"):
        assert refused(changes.transfer, cast.bob, volume, username) == "not_a_member"
    assert changes.transfer(cast.bob, volume, "alice")
    with pytest.raises(NotAllowed):
        changes.change(cast.bob, changes.fresh(volume), {"name": "mine"})
    assert AuditEntry.objects.get(action="volume.transfer").data["before"] == "bob"


def test_what_somebody_leaves_behind_stays_and_the_owners_of_the_tenant_manage_it(cast: Cast) -> None:
    volume = create(cast, cast.bob)
    cast.bob.user.memberships.filter(tenant=cast.demo).update(role=Role.VIEWER)
    with pytest.raises(NotAllowed):
        changes.delete(cast.bob, volume)
    cast.bob.user.memberships.filter(tenant=cast.demo).delete()
    with pytest.raises(NotThere):
        access.get(cast.bob, volume.pk)
    assert changes.transfer(cast.alice, volume, "alice")


def test_a_deletion_at_once_cannot_be_restored(cast: Cast) -> None:
    volume = create(cast)
    assert changes.delete(cast.alice, volume, now=True)
    assert not changes.delete(cast.alice, changes.fresh(volume))
    with pytest.raises(Conflict):
        changes.restore(cast.alice, changes.fresh(volume))
