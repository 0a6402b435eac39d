"""Why the API refuses an object: what stands in the message of the refusal, or in a controller's FailedCreate event."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from clusters.causes.cause import Cause

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
        "namespace_quota_needs_sizes",
        r"failed quota: (?P<quota>[^:]+): must specify (?P<missing>.+)",
        _("The namespace's quota wants sizes that were not given: %(missing)s."),
        _("An admin has to look at the quota %(quota)s: it is not the one that Berth keeps."),
        "admin",
    ),
    Cause(
        "limit_range_violated",
        r"(?P<bound>((maximum|minimum) \S+ usage|\S+ max limit to request ratio) per \w+ is [^,]+),"
        r" but (?P<actual>[^,\[\]]+ is [^,\s\]]+)",
        _("The size is outside what this cluster allows: %(bound)s, but the %(actual)s."),
        _("Choose another size. An admin can change the limit range of the namespace."),
    ),
    Cause(
        "pod_security_violated",
        r'violates PodSecurity "(?P<level>[^"]+)": (?P<violations>.+)',
        _("The cluster's security rules (%(level)s) do not allow this container: %(violations)s"),
        _("Choose another image. If every image is refused, tell an admin."),
        "admin",
    ),
    Cause(
        "webhook_unreachable",
        r'failed calling webhook "(?P<webhook>[^"]+)"',
        _("A check of the cluster (%(webhook)s) does not answer, so nothing new is let in."),
        _("It is tried again by itself. An admin has to look at that webhook."),
        "admin",
    ),
    Cause(
        "webhook_denied",
        r'admission webhook "(?P<webhook>[^"]+)" denied the request:?\s*(?P<reason>.*)',
        _("A rule of this cluster (%(webhook)s) refuses it: %(reason)s"),
        _("Change what it names, or ask an admin about that rule."),
    ),
    Cause(
        "policy_denied",
        r"ValidatingAdmissionPolicy '(?P<policy>[^']+)'.*? denied request:?\s*(?P<reason>.*)",
        _("A rule of this cluster (%(policy)s) refuses it: %(reason)s"),
        _("Change what it names, or ask an admin about that rule."),
    ),
    Cause(
        "namespace_going_away",
        r"namespace:? (?P<namespace>\S+?) (because it )?is being terminated|because it is being terminated",
        _("Your tenant's namespace on the cluster is just being deleted."),
        _("It is made anew as soon as it is gone; this goes on by itself."),
        "admin",
    ),
    Cause(
        "namespace_missing",
        r'namespaces "(?P<namespace>[^"]+)" not found',
        _("Your tenant's namespace %(namespace)s is missing on the cluster."),
        _("Berth makes it anew and goes on by itself."),
        "admin",
    ),
    Cause(
        "service_account_missing",
        r'serviceaccount "(?P<account>[^"]+)" not found|error looking up service account (?P<path>\S+):',
        _("The account that containers run under does not exist yet in the namespace."),
        _("Berth makes it and goes on by itself."),
        "admin",
    ),
    Cause(
        "priority_class_missing",
        r"no PriorityClass with name (?P<name>\S+) was found",
        _("The cluster has no priority class %(name)s."),
        _("An admin has to create it, or take it out of the settings."),
        "admin",
    ),
    Cause(
        "runtime_class_missing",
        r'RuntimeClass "?(?P<name>[^\s"]+)"? not found|pod rejected: RuntimeClass "(?P<other>[^"]+)"',
        _("The cluster has no runtime class %(name)s, which this pool asks for."),
        _("An admin has to install it, or correct the pool's runtime class."),
        "admin",
    ),
    Cause(
        "berth_lacks_right",
        r'User "(?P<account>[^"]*)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)"',
        _("Berth itself is not allowed to %(verb)s %(resource)s on this cluster."),
        _("An admin has to grant it: `manage.py doctor` lists what is missing."),
        "admin",
    ),
    Cause(
        "credentials_refused",
        r"^\W*Unauthorized\W*$|\(401\)",
        _("The cluster does not accept Berth's credentials."),
        _("An admin has to renew them; what was accepted goes on by itself then."),
        "admin",
    ),
    Cause(
        "node_ports_exhausted",
        r"failed to allocate a nodePort|provided port is already allocated|range is full",
        _("The cluster has no free port left for it."),
        _("An admin has to widen the range of node ports, or switch to addresses of a load balancer."),
        "admin",
    ),
    Cause(
        "object_going_away",
        r"object is being deleted|UID in the precondition|uid mismatch|metadata\.uid: Invalid value",
        _("What was there before is still being deleted."),
        _("It goes on by itself when that is gone."),
    ),
    Cause(
        "volume_cannot_shrink",
        r"can not be less than (status\.capacity|previous value)",
        _("A volume can grow, but not shrink."),
        _("Choose a size that is not smaller than now."),
    ),
    Cause(
        "volume_cannot_grow",
        r"only dynamically provisioned pvc can be resized|does not support resize"
        r"|except resources\.requests .*for bound claims",
        _("This volume cannot grow: its kind does not support it, or it was never used."),
        _("Start something with it first. If it still cannot grow, ask an admin about its storage class."),
    ),
    Cause(
        "object_invalid",
        r"(?P<object>\S+ \"[^\"]*\") is invalid: (?P<problem>.+)",
        _("The cluster does not accept the settings: %(problem)s"),
        _("Change what it names. If you did not set it, tell an admin: it is a fault in Berth's settings."),
        "admin",
    ),
)
