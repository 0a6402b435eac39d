from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class JobsConfig(AppConfig):
    name = "jobs"
    verbose_name = _("Jobs")

    def ready(self) -> None:
        """Register with the rooms below: as a holder of claims, beside the watch, and the words of notices."""
        from django.db.models.signals import post_delete, post_save

        from accounts.notices import words
        from accounts.trail import trail_words as trail
        from clusters.signals import networks_changed, reachability_changed, tick
        from clusters.watch import beside
        from quotas import holders
        from quotas.models import Claim, Quota, TenantLimit
        from workloads import conditions, copies
        from workloads.logs import readers, sources

        from . import access, changing, notices, receivers, trail_words
        from .cluster import log_source
        from .cluster.keeper import Keeper
        from .progress import taking
        from .runs import expiry
        from .runs.conditions import OfJobs
        from .runs.holder import Jobs

        readers.register(taking.on_lines)
        holders.register(Claim.Holder.JOB, Jobs())
        conditions.register(OfJobs())
        copies.register("job", access.get)
        beside.register(Keeper)
        reachability_changed.connect(receivers.on_reachability_changed)
        networks_changed.connect(receivers.on_networks_changed)
        for share in (Quota, TenantLimit):
            post_save.connect(receivers.on_share_changed, sender=share)
            post_delete.connect(receivers.on_share_changed, sender=share)
        tick.connect(expiry.on_tick)
        changing.register(notices.on_event)
        words.register(notices.SUBJECT, notices.describe)
        trail.register(trail_words.KINDS, trail_words.DONE)
        sources.register(log_source.KIND)
