"""Words of the audit trail about volumes."""

from django.utils.translation import gettext_lazy as _

KINDS = {
    "volume": _("Volumes"),
}

DONE = {
    "volume.create": _("%(actor)s created the volume “%(name)s”."),
    "volume.change": _("%(actor)s changed the volume “%(name)s”."),
    "volume.delete": _("%(actor)s put the volume “%(name)s” into the bin."),
    "volume.delete_now": _("%(actor)s deleted the volume “%(name)s” with its data."),
    "volume.restore": _("%(actor)s restored the volume “%(name)s” from the bin."),
    "volume.transfer": _("%(actor)s handed the volume “%(name)s” to %(to)s."),
}
