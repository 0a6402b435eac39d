"""`manage.py retire`: let Berth's pods end without it, before Berth is removed. It deletes nothing."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models.functions import Now

from accounts.errors import Refusal
from clusters.connections import connect
from clusters.errors import ClusterError, ClusterUnavailable
from clusters.labels import INSTANCE
from clusters.models import Cluster, Installation
from clusters.pods import retiring
from vitals.clock import is_near_now
from vitals.models import Process
from vitals.pulse import SILENT_AFTER

PARTS = ("worker", "queue", "watcher")


class Command(BaseCommand):
    help = "Say what Berth leaves in its clusters. With --apply, let its pods end without it. Nothing is deleted."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--cluster", metavar="SLUG", help="only this one")
        parser.add_argument("--apply", action="store_true", help="remove Berth's finalizer from its pods")

    def handle(self, *args: Any, **options: Any) -> None:
        clusters = Cluster.objects.all()
        if options["cluster"]:
            clusters = clusters.filter(slug=options["cluster"])
        if not clusters:
            raise CommandError("There is no such cluster.")
        if options["apply"] and (running := parts_that_run()):
            raise CommandError(
                f"These parts of Berth still run and would make new pods: {', '.join(running)}. Stop them, wait "
                f"{SILENT_AFTER.seconds} seconds, and repeat this: kubectl -n berth scale --replicas=0 "
                "deployment/berth-worker deployment/berth-watcher"
            )
        failed = []
        for cluster in clusters:
            try:
                self._retire(cluster, apply=options["apply"])
            except (Refusal, ClusterError) as error:
                failed.append(f"{cluster.slug}: {error.message}")
        if failed:
            raise CommandError("\n".join(failed))

    def _retire(self, cluster: Cluster, *, apply: bool) -> None:
        """Raise ClusterError or Refusal if the cluster cannot be asked, or did not all that was asked of it."""
        api = connect(cluster)
        left = retiring.look(api)
        say = self.stdout.write
        say(f"{cluster.slug}: {len(left.namespaces)} namespaces of tenants, {left.running} pods that run.")
        for kept in left.kept:
            fate = "" if kept.is_safe else "  NOT SAFE: deleting this PVC, or its namespace, deletes its data"
            say(f"  stays: PVC {kept.namespace}/{kept.name} {kept.size} {kept.volume or '(unbound)'}{fate}")
        if not apply:
            say(f"  {len(left.held)} pods cannot end without Berth; with --apply they can.")
            return
        if still := retiring.let_go(left, api):
            raise ClusterUnavailable(f"{still} pods still have Berth's finalizer. Repeat this.")
        say(f"  {len(left.held)} pods can end without Berth. To delete what is left but the volumes' data:")
        say(f"    kubectl delete namespace -l {INSTANCE}={Installation.current_id()}")


def parts_that_run() -> list[str]:
    """Return the parts that were heard just now and write to clusters."""
    heard = Process.objects.filter(is_near_now("seen_at", Now(), SILENT_AFTER), part__in=PARTS)
    return sorted(set(heard.values_list("part", flat=True)))
