import gc
from typing import Any

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
        from clusters.doctor import examination
        from clusters.signals import tick
        from monitoring.alerts import driving, sources
        from portal import own_database, own_parts
        from portal.queue import broker
        from quotas import passes
        from quotas.accounting import spending
        from vitals import pulse

        examination.register(own_database.findings)
        tick.connect(outbox.on_tick)
        tick.connect(keep_trail)
        tick.connect(sync_directory)
        tick.connect(sessions.forget_expired)
        tick.connect(pulse.forget_gone)
        broker.began.connect(passes.on_worker_began)
        broker.began.connect(spending.on_worker_began)
        broker.began.connect(driving.stand_in)
        sources.register("parts", own_parts.firings)
        post_spawn.connect(lambda **_: pulse.beat_beside("worker"), weak=False)
        post_spawn.connect(lambda **_: gc.freeze(), weak=False)  # as in `asgi.py`


def keep_trail(**_: Any) -> None:
    """Enqueue the upkeep of the audit trail once an hour: nearly always it finds nothing to do."""
    from accounts import enqueue
    from clusters.watch.ticks import is_due

    if is_due(3600):
        enqueue.keep_trail()


def sync_directory(**_: Any) -> None:
    """Ask every ten minutes whether the night's sync with the LDAP directory is due."""
    from django.conf import settings

    from accounts import enqueue
    from clusters.watch.ticks import is_due

    if settings.LDAP is not None and is_due(600):
        enqueue.sync_directory()


class PortalAdminConfig(admin.AdminConfig):
    """Django admin under Berth's name and templates."""

    default = False
    default_site = "portal.admin_site.BerthAdminSite"
