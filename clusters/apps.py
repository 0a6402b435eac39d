from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ClustersConfig(AppConfig):
    name = "clusters"
    verbose_name = _("Clusters")

    def ready(self) -> None:
        from accounts.trail import trail_words as trail
        from clusters import trail_words

        trail.register(trail_words.KINDS, trail_words.DONE)
