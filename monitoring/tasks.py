"""Tasks that the worker runs; `enqueue.py` enqueues them."""

from uuid import UUID

from monitoring import doctor
from monitoring.alerts import heartbeat, own_parts, raising, sending
from monitoring.drift import looks
from monitoring.figures import busy, thinning
from monitoring.health import notifying, signs, supplies
from monitoring.idle import looking as idle
from monitoring.intake import ecc
from monitoring.isolation import steps as isolation
from monitoring.parts import looks as parts
from monitoring.post_mortems import filling
from monitoring.validation import steps


def look(cluster_id: str) -> None:
    looks.look(UUID(cluster_id))


def tell_of_health(cluster_id: str) -> None:
    notifying.notify_people(UUID(cluster_id))


def judge_nodes(cluster_id: str) -> None:
    signs.judge_cluster(UUID(cluster_id))


def pass_time() -> None:
    signs.pass_time()


def look_at_supplies(cluster_id: str) -> None:
    supplies.look(UUID(cluster_id))


def look_at_parts(cluster_id: str) -> None:
    parts.look(UUID(cluster_id))


def look_at_load(cluster_id: str) -> None:
    parts.look_at_load(UUID(cluster_id))


def examine(cluster_id: str) -> None:
    doctor.examine(UUID(cluster_id))


def look_for_idle(cluster_id: str) -> None:
    idle.look(UUID(cluster_id))


def validate(validation_id: str) -> None:
    steps.look(UUID(validation_id))


def prove_isolation(proof_id: str) -> None:
    isolation.look(UUID(proof_id))


def label(cluster_id: str) -> None:
    ecc.label(UUID(cluster_id))


def fill_post_mortems() -> None:
    filling.fill_due()


def thin() -> None:
    if thinning.thin():
        busy.sum_up()


def raise_alerts() -> None:
    raising.look()


def send_alerts() -> None:
    sending.send_due()


def beat_heart(route_id: str) -> None:
    heartbeat.beat(UUID(route_id))


def look_at_site() -> None:
    own_parts.look_at_site()
