from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ClustersConfig(AppConfig):
    name = "clusters"
    verbose_name = _("Clusters")

    def ready(self) -> None:
        from accounts.trail import trail_words as trail
        from clusters import trail_words
        from clusters.adding import adding
        from clusters.doctor import keeping
        from clusters.errands import running
        from clusters.signals import tick

        tick.connect(running.forget_old, dispatch_uid="clusters.errands")
        running.register("clusters.examine", keeping.examine_for)
        running.register("clusters.look_at", adding.look_for)
        trail.register(trail_words.KINDS, trail_words.DONE)
