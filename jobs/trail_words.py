"""Words of the audit trail about jobs."""

from django.utils.translation import gettext_lazy as _

KINDS = {"job": _("Jobs")}

DONE = {
    "job.submit": _("%(actor)s submitted the job “%(name)s”."),
    "job.cancel": _("%(actor)s cancelled the job “%(name)s”."),
    "job.stop_rest": _("%(actor)s stopped parts of the job “%(name)s”."),
    "job.retry": _("%(actor)s let the job “%(name)s” run again."),
    "job.delete": _("%(actor)s deleted the job “%(name)s”."),
}
