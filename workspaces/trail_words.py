"""Words of the audit trail about workspaces and images."""

from django.utils.translation import gettext_lazy as _

KINDS = {
    "workspace": _("Workspaces"),
    "class": _("Class launches"),
}

DONE = {
    "workspace.launch": _("%(actor)s launched the workspace “%(name)s”."),
    "workspace.launch-for": _("%(actor)s launched the workspace “%(name)s” for %(for)s."),
    "workspace.start": _("%(actor)s started the workspace “%(name)s”."),
    "workspace.stop": _("%(actor)s stopped the workspace “%(name)s”."),
    "workspace.restart": _("%(actor)s restarted the workspace “%(name)s”."),
    "workspace.delete": _("%(actor)s deleted the workspace “%(name)s”."),
    "workspace.extend": _("%(actor)s extended the lifetime of the workspace “%(name)s”."),
    "workspace.keep-alive": _("%(actor)s kept the workspace “%(name)s” running."),
    "workspace.change": _("%(actor)s changed the workspace “%(name)s”."),
    "workspace.apps": _("%(actor)s changed the apps of the workspace “%(name)s”."),
    "workspace.share": _("%(actor)s shared the workspace “%(name)s” with %(with)s (%(role)s)."),
    "workspace.unshare": _("%(actor)s ended the sharing of the workspace “%(name)s” with %(with)s."),
    "workspace.schedule": _("%(actor)s set the schedule of the workspace “%(name)s”: %(times)s."),
    "workspace.unschedule": _("%(actor)s removed the schedule of the workspace “%(name)s”."),
    "workspace.start-by-schedule": _("%(actor)s started the workspace “%(name)s” by its schedule."),
    "workspace.stop-by-schedule": _("%(actor)s stopped the workspace “%(name)s” by its schedule."),
    "workspace.clone": _("%(actor)s copied the settings of the workspace “%(name)s”."),
    "workspace.ssh": _("%(actor)s opened the workspace “%(name)s” by SSH."),
    "workspace.jupyter": _("%(actor)s asked for the Jupyter token of the workspace “%(name)s”."),
    "template.create": _("%(actor)s saved the template “%(name)s”."),
    "template.change": _("%(actor)s changed the template “%(name)s”."),
    "template.delete": _("%(actor)s deleted the template “%(name)s”."),
    "class.launch": _("%(actor)s launched the class “%(name)s” (people named: %(people)s)."),
    "class.stop": _("%(actor)s stopped the class “%(name)s”."),
    "class.extend": _("%(actor)s extended the class “%(name)s”."),
    "class.collect": _("%(actor)s collected the folder “%(folder)s” of the class “%(name)s”."),
    "class.delete": _("%(actor)s deleted the class launch “%(name)s”. Its workspaces stay."),
    "image.create": _("%(actor)s added the image “%(name)s”."),
    "image.change": _("%(actor)s changed the image “%(name)s”."),
}
