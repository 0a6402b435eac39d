"""Time-slicing: NVIDIA's device plugin gives each GPU out several times. Nothing keeps its users apart."""

from django.utils.translation import gettext_lazy as _

from .replicas import Replicas
from .strategy import NO_ISOLATION


class TimeSlicing(Replicas):
    isolation = NO_ISOLATION
    strategy_label = "time-slicing"
    neighbours = _(
        "You take turns with others on the GPU. Its memory is not divided: who takes too much makes others fail."
        " You are slower while others compute, and a crash may end your program too."
    )
