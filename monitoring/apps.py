from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class MonitoringConfig(AppConfig):
    name = "monitoring"
    verbose_name = _("Monitoring")

    def ready(self) -> None:
        from clusters.signals import tick

        from . import looks

        tick.connect(looks.on_tick, dispatch_uid="monitoring.looks")
