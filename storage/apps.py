from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class StorageConfig(AppConfig):
    name = "storage"
    verbose_name = _("Storage")

    def ready(self) -> None:
        """Register what works beside the watch of a cluster, and what this room promises of a tenant's storage."""
        from accounts.notices import words
        from accounts.trail import trail_words as trail
        from clusters.watch import beside
        from quotas import signals
        from quotas.accounting import stored
        from quotas.allowed import storage
        from quotas.pools import leases

        from . import ledger, limits, notices, trail_words
        from .cluster.keeper import Keeper
        from .files import sessions
        from .mounts.leasing import Leases

        beside.register(Keeper)
        leases.register(Leases())
        signals.claim_waits.connect(
            lambda claim, **_: sessions.give_way(claim), weak=False, dispatch_uid="storage.files"
        )
        storage.register(limits.promised)
        stored.register(ledger.gib_months)
        words.register(notices.SUBJECT, notices.describe)
        trail.register(trail_words.KINDS, trail_words.DONE)
