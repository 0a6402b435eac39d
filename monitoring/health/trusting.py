"""An admin's decision that a GPU works: earlier reports about it do not count any more.

The decision outlives the GPU's row, which is deleted with its node: a node that is deleted and comes back without a
restart is the same machine and reports the same errors. The troubles that the decision ended keep it. After a restart
none is needed: memory errors are counted from zero, and earlier Xids are over.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Conflict
from accounts.models import Scope
from accounts.trail import audit
from clusters.models import Gpu, Node
from monitoring.health import judging
from monitoring.health.rules import boot_of, errors
from monitoring.models import Trouble


def trust(actor: Actor, gpu: Gpu) -> bool:
    """Put the GPU into use. Return False if it was in use. Raise Conflict if its agent still reports a problem."""
    actor.require(Scope.ADMIN)
    with transaction.atomic():
        judging.lock(gpu.cluster_id, gpu.node)
        row = Gpu.objects.filter(pk=gpu.pk).exclude(out_code="").first()
        if row is None:
            return False
        row.trusted_at, row.trusted_errors = timezone.now(), errors(row)
        row.save(update_fields=["trusted_at", "trusted_errors"])
        _keep(row)
        data = {"gpu": row.uuid, "node": row.node, "why": row.out_code}
        audit.record(actor, "cluster.trust_gpu", target=row.cluster, data=data)
        judging.judge(row.cluster_id, row.node)
        if Gpu.objects.filter(pk=gpu.pk).exclude(out_code="").exists():
            raise Conflict(
                "gpu_still_out",
                _("Its agent still reports that it does not work."),
                _("Reset it or restart the node first; it is used again automatically when it answers."),
            )
    return True


def recall(new: Sequence[Gpu]) -> None:
    """Restore the decisions about GPUs of one node whose rows are created again."""
    if not new:
        return
    there = {gpu.uuid: gpu for gpu in new}
    its = Trouble.objects.filter(cluster=new[0].cluster_id, node=new[0].node, subject__in=there)
    words = its.filter(data__has_key="trusted_errors", data__boot=_boot(new[0]), ended_at__isnull=False)
    for word in words.order_by("ended_at"):
        gpu = there[word.subject]
        gpu.trusted_at, gpu.trusted_errors = word.ended_at, word.data["trusted_errors"]


def _keep(gpu: Gpu) -> None:
    told = {"trusted_errors": gpu.trusted_errors, "boot": _boot(gpu)}
    of_gpu = Trouble.objects.filter(cluster=gpu.cluster_id, node=gpu.node, subject=gpu.uuid)
    for trouble in of_gpu.filter(about=Trouble.About.GPU, takes_out=True, ended_at=None):
        trouble.data |= told
        trouble.save(update_fields=["data"])


def _boot(gpu: Gpu) -> str:
    return boot_of(Node.objects.filter(cluster=gpu.cluster_id, name=gpu.node).first())
