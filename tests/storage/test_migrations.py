"""Migrations that change rows of volumes, forth and back."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from storage.models import StorageSpan, Volume
from tests.cast import Cast
from tests.shared.migrating import as_migrated, migrate

__all__ = ["as_migrated"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("as_migrated")
def test_volumes_of_an_earlier_version_are_in_the_ledger_from_their_creation(cast: Cast) -> None:
    facts: dict[str, Any] = {"tenant": cast.demo, "owner": cast.bob.user, "cluster": cast.cluster}
    here = Volume.objects.create(**facts, name="here", kind="disk", requested_mib=64, size_mib=100)
    gone = Volume.objects.create(**facts, name="gone", kind="dataset", requested_mib=64)
    gone.deleted_at = timezone.now()
    gone.save()
    before = {volume.pk: Volume.objects.filter(pk=volume.pk).values().get() for volume in (here, gone)}

    migrate(("storage", "0006_files_session"))
    Volume.objects.filter(pk=here.pk).update(name="there")  # nothing that writes a ledger is left
    migrate()
    wanted = {
        (here.pk, cast.demo.pk, cast.bob.user.pk, 100, here.created_at, None),
        (gone.pk, cast.demo.pk, cast.bob.user.pk, 64, gone.created_at, gone.deleted_at),
    }
    columns = ("volume", "tenant_id", "user_id", "mib", "since", "until")
    assert set(StorageSpan.objects.values_list(*columns)) == wanted
    before[here.pk]["name"] = "there"
    assert before == {row["id"]: row for row in Volume.objects.values()}

    Volume.objects.filter(pk=here.pk).update(requested_mib=200)
    assert list(StorageSpan.objects.filter(until=None).values_list("mib", flat=True)) == [200]
