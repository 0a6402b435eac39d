from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class WorkspacesConfig(AppConfig):
    name = "workspaces"
    verbose_name = _("Workspaces")

    def ready(self) -> None:
        """Connect the receivers of signals from the rooms below."""
        from django.contrib.auth.signals import user_logged_in
        from django.db.models.signals import post_delete, post_save

        from accounts.notices import words
        from accounts.signals import access_changed, ssh_keys_changed, token_revoked
        from accounts.trail import trail_words as trail
        from clusters.models import Cluster
        from clusters.signals import networks_changed, reachability_changed, tick
        from clusters.watch import beside
        from quotas import holders
        from quotas.bookings import warm
        from quotas.models import Claim, Quota, TenantLimit
        from workloads import conditions, copies
        from workloads.logs import sources

        from . import access, notices, receivers, trail_words
        from .cluster import log_source
        from .runs.conditions import OfWorkspaces
        from .runs.holder import Workspaces
        from .runs.reconciler import Reconciler
        from .state import live
        from .warming import reading
        from .warming.warmer import Warmer

        holders.register(Claim.Holder.WORKSPACE, Workspaces())
        conditions.register(OfWorkspaces())
        copies.register("workspace", access.get)
        beside.register(Reconciler)
        beside.register(Warmer)
        warm.register(reading.images_of)
        reachability_changed.connect(receivers.on_reachability_changed)
        networks_changed.connect(receivers.on_networks_changed)
        tick.connect(receivers.on_tick)
        user_logged_in.connect(receivers.on_signed_in)
        ssh_keys_changed.connect(receivers.on_ssh_keys_changed)
        access_changed.connect(receivers.on_rights_changed)
        token_revoked.connect(receivers.on_token_revoked)
        post_save.connect(receivers.on_cluster_saved, sender=Cluster)
        for share in (Quota, TenantLimit):
            post_save.connect(receivers.on_share_changed, sender=share)
            post_delete.connect(receivers.on_share_changed, sender=share)
        live.register(notices.on_event)
        trail.register(trail_words.KINDS, trail_words.DONE)
        sources.register(log_source.KIND)
        words.register(notices.SUBJECT, notices.describe)
        words.register(notices.SUBJECT_OF_SHARES, notices.describe_shares)
        # The SSH jump ends connections whose key was removed.
        ssh_keys_changed.connect(receivers.on_access_changed)
