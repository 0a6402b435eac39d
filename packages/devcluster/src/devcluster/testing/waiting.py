"""Wait for a condition, with a limit that suits a busy machine."""

import time
from collections.abc import Callable


def until(holds: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"did not happen within {seconds:g} s"
        time.sleep(0.02)
