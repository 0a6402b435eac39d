"""Words of the audit trail about volumes."""

from django.utils.translation import gettext_lazy as _

KINDS = {
    "volume": _("Volumes"),
    "connection": _("Connections"),
}

DONE = {
    "connection.create": _("%(actor)s added the connection “%(name)s”."),
    "connection.change": _("%(actor)s changed the connection “%(name)s”."),
    "connection.delete": _("%(actor)s deleted the connection “%(name)s”."),
    "volume.create": _("%(actor)s created the volume “%(name)s”."),
    "volume.adopt": _("%(actor)s adopted %(of)s as the volume “%(name)s” of %(owner)s."),
    "volume.confirm": _("%(actor)s confirmed the adopted volume “%(name)s”: it can be written to."),
    "volume.change": _("%(actor)s changed the volume “%(name)s”."),
    "volume.delete": _("%(actor)s put the volume “%(name)s” into the bin."),
    "volume.delete_now": _("%(actor)s deleted the volume “%(name)s” with its data."),
    "volume.restore": _("%(actor)s restored the volume “%(name)s” from the bin."),
    "volume.snapshot": _("%(actor)s took a snapshot of the volume “%(name)s”."),
    "volume.publish": _("%(actor)s published version %(number)s of the dataset “%(name)s”."),
    "volume.delete_snapshot": _("%(actor)s deleted a snapshot or version of the volume “%(name)s”."),
    "volume.open_files": _("%(actor)s opened the files of the volume “%(name)s”."),
    "volume.close_files": _("%(actor)s closed the files of the volume “%(name)s”."),
    "volume.transfer": _("%(actor)s handed the volume “%(name)s” to %(to)s."),
}
