from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class JobsConfig(AppConfig):
    name = "jobs"
    verbose_name = _("Jobs")

    def ready(self) -> None:
        """Register with the rooms below: as a holder of claims, beside the watch, and the words of notices."""
        from accounts.notices import words
        from accounts.trail import trail_words as trail
        from clusters.signals import reachability_changed, tick
        from clusters.watch import beside
        from quotas import holders
        from quotas.models import Claim
        from workloads import conditions
        from workloads.logs import readers, sources

        from . import changing, notices, trail_words
        from .cluster import log_source
        from .cluster.keeper import Keeper
        from .progress import taking
        from .runs import expiry
        from .runs.conditions import OfJobs
        from .runs.holder import Jobs

        readers.register(taking.on_lines)
        holders.register(Claim.Holder.JOB, Jobs())
        conditions.register(OfJobs())
        beside.register(Keeper)
        reachability_changed.connect(changing.on_reachability_changed)
        tick.connect(expiry.on_tick)
        changing.register(notices.on_event)
        words.register(notices.SUBJECT, notices.describe)
        trail.register(trail_words.KINDS, trail_words.DONE)
        sources.register(log_source.KIND)
