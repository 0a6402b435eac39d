"""Reasons why the API refuses an object, from the refusal's message or a controller's FailedCreate event."""

from __future__ import annotations

from dataclasses import replace

from django.utils.translation import gettext_lazy as _

from clusters.causes.cause import Cause
from clusters.causes.volumes import CANNOT_RESIZE, CLASS_MISSING

RULE_DENIED = Cause(
    "rule_denied",
    r"(?P<reason>(?:admission webhook|ValidatingAdmissionPolicy) ['\"].+? denied (?:the )?request.*"
    r"|image policy webhook backend denied.*"
    r"|(?:(?:maximum|minimum) \S+ usage|\S+ max limit to request ratio) per \w+ is [^\[\]]+)",
    _("A rule of this cluster refuses it: %(reason)s"),
    _("Change what it names, such as the size, or ask an admin about that rule."),
)

CAUSES = (
    Cause(
        "namespace_quota_exceeded",
        r"exceeded quota: (?P<quota>[^,]+), requested: (?P<requested>.+?), used: (?P<used>.+?),"
        r" limited: (?P<limited>.+)",
        _(
            "Your tenant's share of this cluster is used up: asked for %(requested)s, used %(used)s of %(limited)s."
        ),
        _("Stop something of your tenant's, or ask an admin for more. It is tried again by itself."),
    ),
    Cause(
        "control_plane_slow",
        # For a webhook, its name.
        r'(?:failed calling webhook "|(?=etcdserver: |connection to the server \S+:6443 was refused'
        r"|\bthe server (?:is currently unable to|was unable to return|has received too many)"
        r"|request did not complete within|could not be completed at this time|client rate limiter Wait"
        r"|apiserver (?:is )?(?:not ready|shutting down)|http2: client connection lost))"
        r'(?P<problem>[^"\n]+)',
        _("A part of the cluster that every change passes does not answer, or too slowly: %(problem)s"),
        _(
            "It is tried again by itself, and what runs goes on. If it lasts, an admin has to look at that part: the "
            "webhook that is named, the API server or its database (etcd)."
        ),
        "admin",
    ),
    RULE_DENIED,
    Cause(
        "object_going_away",
        r"namespace:? \S+? (?:because it )?is being terminated|because it is being terminated"
        r'|namespaces "[^"]+" not found|serviceaccount "[^"]+" not found|error looking up service account \S+:'
        r"|object is being deleted|UID in the precondition|uid mismatch|metadata\.uid: Invalid value",
        _("What it needs in the cluster is still being deleted, or is not made again yet."),
        _("Berth goes on by itself as soon as it can. If it lasts, tell an admin."),
        "admin",
    ),
    Cause(
        "berth_lacks_right",
        r"(?P<problem>User \"[^\"]*\" cannot \S+ (?:resource \"[^\"]*\"|\S+(?= (?:at|in) the ))"
        r"|^\W*Unauthorized\W*$|\(401\))",
        _("The cluster does not let Berth do what it has to: %(problem)s."),
        _(
            "An admin has to renew Berth's credentials or grant the right: `manage.py doctor` tells which. What was "
            "accepted goes on by itself then."
        ),
        "admin",
    ),
    CLASS_MISSING,
    CANNOT_RESIZE,
    Cause(
        "object_invalid",
        r"(?:\S+ \"[^\"]*\" is invalid: |(?=violates PodSecurity|failed quota: ))(?P<problem>.+)",
        _("The cluster does not accept the settings: %(problem)s"),
        _(
            "Change what it names, or choose another image. If you did not set it, tell an admin: a setting of "
            "Berth, or a quota that is not Berth's, is wrong."
        ),
        "admin",
    ),
    # Messages of the API's other checks.
    replace(RULE_DENIED, pattern=r"\b(?:is|are) forbidden: (?P<reason>(?!User \\*\").+)"),
)
