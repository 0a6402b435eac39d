"""Names of `tests/shared/driving_jobs.py`."""

from tests.shared.driving_jobs import (
    FAILS,
    PASSES,
    RUNS,
    attempts,
    drive,
    held,
    image,
    in_phase,
    submitted,
    told,
)

__all__ = ["FAILS", "PASSES", "RUNS", "attempts", "drive", "held", "image", "in_phase", "submitted", "told"]
