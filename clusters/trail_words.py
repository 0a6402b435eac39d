"""Words of the audit trail about clusters."""

from django.utils.translation import gettext_lazy as _

KINDS = {
    "cluster": _("Clusters"),
}

DONE = {
    "cluster.create": _("%(actor)s added the cluster “%(name)s”."),
    "cluster.change": _("%(actor)s changed the cluster “%(name)s”."),
    "unknowncause.dismiss": _("%(actor)s dismissed a message without an explanation: %(text)s"),
    "unknowncause.delete": _("%(actor)s deleted a message without an explanation: %(name)s"),
    "cluster.without_isolation": _("%(actor)s let the cluster “%(name)s” run without isolation."),
    "cluster.with_isolation": _("%(actor)s required isolation in the cluster “%(name)s” again."),
    "cluster.test": _("%(actor)s tested the connection to the cluster “%(name)s”."),
}
