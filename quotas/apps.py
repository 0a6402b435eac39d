from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class QuotasConfig(AppConfig):
    name = "quotas"
    verbose_name = _("Pools and quotas")

    def ready(self) -> None:
        from accounts.notices import words
        from accounts.service_accounts import changing
        from accounts.trail import trail_words as trail
        from clusters.doctor import examination
        from clusters.signals import capacity_changed, tick
        from quotas import holders, notices, passes, reclaim, signals, trail_words
        from quotas.accounting import notices as budget_notices
        from quotas.accounting import spending
        from quotas.bookings import notices as booking_notices
        from quotas.live import on_change
        from quotas.pools import doctor

        holders.connect()
        changing.register(holders.busy)
        # What an admission pass changes, it announces itself, once.
        for signal in (capacity_changed, signals.claim_released, signals.standing_changed):
            signal.connect(on_change, dispatch_uid="quotas.live")
        capacity_changed.connect(passes.on_capacity_changed, dispatch_uid="quotas.on_capacity_changed")
        examination.register(doctor.findings_about)
        tick.connect(passes.on_tick, dispatch_uid="quotas.on_tick")
        tick.connect(reclaim.on_tick, dispatch_uid="quotas.reclaim")
        tick.connect(spending.on_tick, dispatch_uid="quotas.accounting.spending")
        trail.register(trail_words.KINDS, trail_words.DONE)
        words.register(notices.SUBJECT, notices.describe)
        words.register(budget_notices.SUBJECT, budget_notices.describe)
        words.register(booking_notices.SUBJECT, booking_notices.describe)
