import gc

from django.apps import AppConfig
from django.contrib.admin import apps as admin


class PortalConfig(AppConfig):
    name = "portal"
    default = True

    def ready(self) -> None:
        """Connect rooms to signals of rooms that they cannot import."""
        from django_q.signals import post_spawn

        from accounts.credentials import sessions
        from accounts.notices import outbox
        from clusters.signals import tick
        from portal import task_broker
        from quotas import passes
        from quotas.accounting import spending
        from vitals import pulse
        from workspaces import enqueue

        tick.connect(outbox.on_tick)
        tick.connect(sessions.forget_expired)
        tick.connect(pulse.forget_gone)
        task_broker.began.connect(passes.on_worker_began)
        task_broker.began.connect(spending.on_worker_began)
        task_broker.began.connect(enqueue.on_worker_began)
        post_spawn.connect(lambda **_: pulse.beat_beside("worker"), weak=False)
        post_spawn.connect(lambda **_: gc.freeze(), weak=False)  # as in `asgi.py`


class PortalAdminConfig(admin.AdminConfig):
    """Django admin under Berth's name and templates."""

    default = False
    default_site = "portal.admin_site.BerthAdminSite"
