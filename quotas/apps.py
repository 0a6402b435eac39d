from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class QuotasConfig(AppConfig):
    name = "quotas"
    verbose_name = _("Pools and quotas")

    def ready(self) -> None:
        from clusters.signals import capacity_changed, tick
        from quotas import passes

        capacity_changed.connect(passes.on_capacity_changed, dispatch_uid="quotas.on_capacity_changed")
        tick.connect(passes.on_tick, dispatch_uid="quotas.on_tick")
