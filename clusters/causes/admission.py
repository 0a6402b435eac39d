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
    r"|is invalid: (?=[^\n]*\b(?:disallowed|denied|forbidden|blocked) by\b).*"
    r"|\b(?:denied|disallowed|blocked|prevented|rejected) by [^\n]*\b(?:policy|policies|rule|constraint"
    r"|admission)\b.*"
    r"|(?:(?:maximum|minimum) \S+ usage|\S+ max limit to request ratio) per \w+ is [^\[\]]+)",
    _("A rule of this cluster rejected it: %(reason)s"),
    _("Change what it names, such as the size, or ask an admin about that rule."),
)

CONTROL_PLANE_SLOW = Cause(
    "control_plane_slow",
    # For a webhook, its name.
    r'(?:failed (?:calling|to call) webhook "|(?=etcdserver: |failed (?:calling|to call) webhook'
    r"|\bno endpoints available for"
    r"|\bleader changed\b|Too large resource version|connection to the server \S+:6443 was refused"
    r"|\bthe server (?:is currently unable to|was unable to return|has received too many)"
    r"|request did not complete within|could not be completed at this time|client rate limiter Wait"
    r"|apiserver (?:is )?(?:not ready|shutting down)|http2: client connection lost))"
    r'(?P<problem>[^"\n]+)',
    _("A component of the cluster that checks every change does not answer, or too slowly: %(problem)s"),
    _(
        "Berth retries automatically. Running workspaces are not affected. If this continues, an admin "
        "has to check that component: the named webhook, the API server or its database (etcd)."
    ),
    "admin",
)

CAUSES = (
    Cause(
        "namespace_quota_exceeded",
        r"exceeded quota: (?P<quota>[^,]+), requested: (?P<requested>.+?), used: (?P<used>.+?),"
        r" limited: (?P<limited>.+)",
        _(
            "Your team's quota in this cluster is used up: requested %(requested)s, used %(used)s of %(limited)s."
        ),
        _("Stop a workspace of your team, or ask an admin for more quota. Berth retries automatically."),
    ),
    CONTROL_PLANE_SLOW,
    RULE_DENIED,
    Cause(
        "object_going_away",
        r"namespace:? \S+? (?:because it )?is being terminated|because it is being terminated"
        r'|namespaces "[^"]+" not found|serviceaccount "[^"]+" not found|error looking up service account \S+:'
        r"|object is being deleted|UID in the precondition|uid mismatch|metadata\.uid: Invalid value",
        _("Something it needs in the cluster is still being deleted, or does not exist again yet."),
        _("Berth continues automatically as soon as it can. If this continues, tell an admin."),
        "admin",
    ),
    Cause(
        "berth_lacks_right",
        r"(?P<problem>User \"[^\"]*\" cannot \S+ (?:resource \"[^\"]*\"|\S+(?= (?:at|in) the ))"
        r"|^\W*Unauthorized\W*$|\(401\))",
        _("Berth lacks a permission in the cluster: %(problem)s."),
        _(
            "An admin has to renew Berth's credentials or grant the permission: `manage.py doctor` shows "
            "which. Accepted requests then continue automatically."
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
    replace(
        CONTROL_PLANE_SLOW,
        pattern=r"(?:^|\n)(?P<problem>[^\n]*\b(?:Internal error occurred|InternalError|ServiceUnavailable"
        r"|TooManyRequests"
        r"|time(?:d )?out|deadline exceeded|connection (?:refused|reset)|no route to host|try again|EOF|x509"
        r"|service unavailable)\b[^\n]*)",
        of_its_source=True,
    ),
    # Messages of the API's other checks, and of policies without a webhook of their own.
    replace(RULE_DENIED, pattern=r"\b(?:is|are) forbidden: (?P<reason>(?!User \\*\").+)"),
    replace(
        RULE_DENIED,
        pattern=r"(?:^|\n)(?P<reason>[^\n]*\b(?:polic(?:y|ies)|rule\(s\)|constraint)\b[^\n]{0,120}"
        r"\b(?:blocked|denie[ds]|rejected|violat\w+)\b[^\n]*|forbidden: (?:maximum|minimum) [^\n]*)",
    ),
)
