"""Enqueue what monitoring/tasks.py runs, in the current transaction, by dotted name: nothing here imports it."""

from uuid import UUID

from django_q.tasks import async_task


def look(cluster_id: UUID) -> None:
    async_task("monitoring.tasks.look", str(cluster_id), group="drift")


def tell_of_health(cluster_id: UUID) -> None:
    async_task("monitoring.tasks.tell_of_health", str(cluster_id), group="health")


def judge_nodes(cluster_id: UUID) -> None:
    async_task("monitoring.tasks.judge_nodes", str(cluster_id), group="health")


def pass_time() -> None:
    async_task("monitoring.tasks.pass_time", group="health")


def look_at_supplies(cluster_id: UUID) -> None:
    async_task("monitoring.tasks.look_at_supplies", str(cluster_id), group="health")


def look_at_parts(cluster_id: UUID) -> None:
    async_task("monitoring.tasks.look_at_parts", str(cluster_id), group="health")


def look_at_load(cluster_id: UUID) -> None:
    async_task("monitoring.tasks.look_at_load", str(cluster_id), group="health")


def examine(cluster_id: UUID) -> None:
    async_task("monitoring.tasks.examine", str(cluster_id), group="health")


def look_for_idle(cluster_id: UUID) -> None:
    async_task("monitoring.tasks.look_for_idle", str(cluster_id), group="idle")


def validate(validation_id: UUID) -> None:
    async_task("monitoring.tasks.validate", str(validation_id), group="validation")


def prove_isolation(proof_id: UUID) -> None:
    async_task("monitoring.tasks.prove_isolation", str(proof_id), group="isolation")


def label(cluster_id: UUID) -> None:
    async_task("monitoring.tasks.label", str(cluster_id), group="figures")


def fill_post_mortems() -> None:
    async_task("monitoring.tasks.fill_post_mortems", group="post-mortems")


def thin() -> None:
    async_task("monitoring.tasks.thin", group="figures")


def raise_alerts() -> None:
    async_task("monitoring.tasks.raise_alerts", group="alerts")


def send_alerts() -> None:
    async_task("monitoring.tasks.send_alerts", group="alerts")


def beat_heart(route_id: UUID) -> None:
    async_task("monitoring.tasks.beat_heart", str(route_id), group="alerts")


def look_at_site() -> None:
    async_task("monitoring.tasks.look_at_site", group="alerts")
