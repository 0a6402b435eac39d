from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class WorkspacesConfig(AppConfig):
    name = "workspaces"
    verbose_name = _("Workspaces")

    def ready(self) -> None:
        """Connect the receivers of signals from the rooms below."""
        from django.db.models.signals import post_delete, post_save

        from accounts.notices import words
        from accounts.signals import access_changed, ssh_keys_changed
        from clusters.models import Cluster
        from clusters.signals import objects_changed, reachability_changed, relisted, tick
        from quotas.models import Quota, TenantLimit
        from quotas.signals import (
            ask_storage,
            claim_admitted,
            claim_ends_by_budget,
            claim_reclaimed,
            claim_released,
            claim_spared,
            claim_to_stop,
            claim_waits,
            name_holders,
            standing_changed,
        )

        from . import lifetime, measures, notices, receivers, runs
        from .models import Event

        claim_admitted.connect(runs.on_admitted)
        claim_admitted.connect(lifetime.on_admitted)
        claim_waits.connect(runs.on_waits)
        standing_changed.connect(runs.on_standing_changed)
        claim_released.connect(runs.on_released)
        claim_to_stop.connect(runs.on_to_stop)
        claim_reclaimed.connect(runs.on_reclaimed)
        claim_spared.connect(runs.on_spared)
        claim_ends_by_budget.connect(runs.on_ends_by_budget)
        name_holders.connect(receivers.on_name_holders)
        ask_storage.connect(receivers.on_ask_storage)
        objects_changed.connect(receivers.on_objects_changed)
        relisted.connect(receivers.on_relisted)
        reachability_changed.connect(receivers.on_reachability_changed)
        tick.connect(receivers.on_tick)
        ssh_keys_changed.connect(receivers.on_ssh_keys_changed)
        access_changed.connect(receivers.on_ssh_keys_changed)
        access_changed.connect(receivers.on_access_changed)
        post_save.connect(receivers.on_cluster_saved, sender=Cluster)
        for share in (Quota, TenantLimit):
            post_save.connect(receivers.on_share_changed, sender=share)
            post_delete.connect(receivers.on_share_changed, sender=share)
        post_save.connect(notices.on_event, sender=Event)
        post_save.connect(measures.on_event, sender=Event)
        words.register(notices.SUBJECT, notices.describe)
        # The SSH jump ends connections whose key was removed.
        ssh_keys_changed.connect(receivers.on_access_changed)
