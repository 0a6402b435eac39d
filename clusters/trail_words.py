"""Words of the audit trail about clusters."""

from django.utils.translation import gettext_lazy as _

KINDS = {
    "cluster": _("Clusters"),
}

DONE = {
    "cluster.create": _("%(actor)s added the cluster “%(name)s”."),
    "cluster.change": _("%(actor)s changed the cluster “%(name)s”."),
    "unknowncause.dismiss": _("%(actor)s dismissed a message without an explanation: %(text)s"),
    "cluster.test": _("%(actor)s tested the connection to the cluster “%(name)s”."),
}
