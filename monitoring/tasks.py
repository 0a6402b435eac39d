"""Tasks of the worker for monitoring, and functions that enqueue them: only this module knows the task queue."""

from uuid import UUID

from django_q.tasks import async_task


def enqueue_look(cluster_id: UUID) -> None:
    async_task("monitoring.tasks.look", str(cluster_id), group="drift")


def look(cluster_id: str) -> None:
    from monitoring.drift import looks

    looks.look(UUID(cluster_id))


def enqueue_telling(cluster_id: UUID) -> None:
    async_task("monitoring.tasks.tell_of_health", str(cluster_id), group="health")


def enqueue_judging(cluster_id: UUID) -> None:
    async_task("monitoring.tasks.judge_nodes", str(cluster_id), group="health")


def judge_nodes(cluster_id: str) -> None:
    from monitoring.health import signs

    signs.judge_cluster(UUID(cluster_id))


def enqueue_passing_time() -> None:
    async_task("monitoring.tasks.pass_time", group="health")


def pass_time() -> None:
    from monitoring.health import signs

    signs.pass_time()


def enqueue_supplies(cluster_id: UUID) -> None:
    async_task("monitoring.tasks.look_at_supplies", str(cluster_id), group="health")


def look_at_supplies(cluster_id: str) -> None:
    from monitoring.health import supplies

    supplies.look(UUID(cluster_id))


def tell_of_health(cluster_id: str) -> None:
    from monitoring.health import telling

    telling.tell_people(UUID(cluster_id))


def enqueue_validation(validation_id: UUID) -> None:
    async_task("monitoring.tasks.validate", str(validation_id), group="validation")


def validate(validation_id: str) -> None:
    from monitoring.validation import steps

    steps.look(UUID(validation_id))


def enqueue_labels(cluster_id: UUID) -> None:
    async_task("monitoring.tasks.label", str(cluster_id), group="figures")


def label(cluster_id: str) -> None:
    from monitoring.intake import ecc

    ecc.label(UUID(cluster_id))


def enqueue_thinning() -> None:
    async_task("monitoring.tasks.thin", group="figures")


def thin() -> None:
    from monitoring.figures import busy, thinning

    if thinning.thin():
        busy.sum_up()
