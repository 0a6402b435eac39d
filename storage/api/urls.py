"""REST addresses of volumes; and those of the contract that are not built yet."""

from typing import Any

from django.urls import path

from accounts.access import Actor
from accounts.models import Scope
from accounts.rest.not_yet import not_yet
from storage import access

from . import api


def is_seen(actor: Actor, **address: Any) -> None:
    access.get(actor, address["id"])


urlpatterns = [
    path("volumes/", api.VolumesView.as_view(), name="volumes"),
    path("volumes/<uuid:id>/", api.VolumeView.as_view(), name="volume"),
    path("volumes/<uuid:id>/restore/", api.RestoreView.as_view(), name="volume-restore"),
    path("volumes/<uuid:id>/transfer/", api.TransferView.as_view(), name="volume-transfer"),
    *(
        path(
            f"volumes/<uuid:id>/{verb}/",
            not_yet("POST", write_scope=Scope.VOLUMES, check=is_seen),
            name=f"volume-{verb}",
        )
        for verb in ("snapshot", "clone", "publish")
    ),
]
