"""Texts about what keeps a run from starting, the same for workspaces and jobs."""

from __future__ import annotations

from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class Line(NamedTuple):
    sentence: str | Promise
    hint: str | Promise = ""


# By the codes of `storage.mounts.mounting.in_the_way` and of `workloads.pods.making.refuse_image`.
OF_RUNS: dict[str, Line] = {
    "volume_deleted": Line(
        _("Somebody deleted its storage %(claim)s in the cluster. The data is kept on volume %(volume)s."),
        _("The next start mounts that volume again."),
    ),
    "volume_gone": Line(
        _("Its storage %(claim)s was deleted, and volume %(volume)s is no longer available."),
        _("Ask your admin for that volume. Berth does not use an empty volume instead."),
    ),
    "volume_unusable": Line(
        _("It mounts the volume “%(volume)s”, which is in the bin or lost."),
        _("Restore the volume, or start anew without it."),
    ),
    "volume_not_shared": Line(
        _("It mounts the volume “%(volume)s”, which is not shared with its owner any more."),
        _("Ask the owner of the volume, or start anew without it."),
    ),
    "image_not_allowed": Line(
        _("Your team may no longer use the image %(reference)s."),
        _("Choose another image, or ask an admin to allow its registry again. Files are kept."),
    ),
    "volume_being_made": Line(_("The volume “%(volume)s” is being created.")),
}
