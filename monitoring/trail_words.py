"""Words of the audit trail about nodes, agents and drift."""

from django.utils.translation import gettext_lazy as _

KINDS = {
    "post_mortem": _("Post-mortems"),
    "agent_token": _("Tokens of agents"),
    "alert": _("Alerts"),
    "alert_route": _("Alert routes"),
    "idlepolicy": _("Idle policies"),
}

DONE = {
    "post_mortem.note": _("%(actor)s added a note to the post-mortem of %(name)s."),
    "agent_token.create": _("%(actor)s created the token “%(name)s” for the agents of %(cluster)s."),
    "agent_token.revoke": _("%(actor)s revoked the token “%(name)s” of the agents of %(cluster)s."),
    "alert.acknowledge": _("%(actor)s acknowledged the alert “%(code)s”."),
    "alert.silence": _("%(actor)s silenced the alert “%(code)s” for %(minutes)s min."),
    "alert.resolve": _("%(actor)s resolved the alert “%(code)s”."),
    "alert_route.create": _("%(actor)s created the alert route “%(name)s”."),
    "alert_route.change": _("%(actor)s changed the alert route “%(name)s”."),
    "alert_route.delete": _("%(actor)s deleted the alert route “%(name)s”."),
    "alert_route.send_again": _("%(actor)s had a message by the alert route “%(name)s” sent again."),
    "alert_route.test": _("%(actor)s sent a test by the alert route “%(name)s”."),
    "idlepolicy.create": _("%(actor)s added the idle policy “%(name)s”."),
    "idlepolicy.change": _("%(actor)s changed the idle policy “%(name)s”."),
    "idlepolicy.delete": _("%(actor)s removed the idle policy “%(name)s”."),
    "drift.delete": _("%(actor)s deleted %(name)s in %(cluster)s, which Berth did not need."),
    "drift.delete_data": _("%(actor)s deleted %(name)s in %(cluster)s with the data on it."),
    "drift.accept": _("%(actor)s accepted a change to %(name)s in %(cluster)s."),
    "drift.recreate": _("%(actor)s recreated %(name)s in %(cluster)s."),
    "drift.look": _("%(actor)s checked the clusters for drift."),
    "cluster.validate": _("%(actor)s tested the GPUs of the node %(node)s (%(pool)s)."),
    "cluster.overrule_validation": _("%(actor)s allowed the node %(node)s although its test failed."),
    "cluster.prove_isolation": _("%(actor)s had the isolation of tenants in %(name)s proven."),
    "cluster.cordon": _("%(actor)s closed the node %(node)s for new work."),
    "cluster.uncordon": _("%(actor)s opened the node %(node)s again."),
    "cluster.drain": _("%(actor)s started to drain the node %(node)s (%(minutes)s min)."),
    "cluster.trust_gpu": _("%(actor)s put the GPU %(gpu)s of the node %(node)s into use again."),
    "cluster.forget_agent": _("%(actor)s removed the silent agent of the node %(node)s."),
}
