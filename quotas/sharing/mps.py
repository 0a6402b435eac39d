"""MPS: one service of NVIDIA's per GPU runs everybody's kernels at once, and holds each to a share."""

from django.utils.translation import gettext_lazy as _

from .replicas import Replicas
from .strategy import HARD_CAP


class Mps(Replicas):
    isolation = HARD_CAP
    neighbours = _(
        "NVIDIA's service holds everybody on the GPU to a share of its memory and compute. A program that fails"
        " badly on the GPU may end yours too."
    )
