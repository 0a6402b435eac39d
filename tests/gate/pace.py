"""Pace of this machine, measured by a fixed piece of CPU work in one process per test worker."""

import statistics
import subprocess
import sys

REFERENCE_SECONDS = 0.5
"""Time of the work on the machine whose minutes the budgets are: two quiet cores."""
PROCESSES = 2
ROUNDS = 3
WORK = """
import hashlib, time
began = time.perf_counter()
table = {}
for number in range(400_000):
    table[number % 1000] = hashlib.sha256(b"%d" % number).digest()
print(time.perf_counter() - began)
"""


def measure() -> float:
    """Return how many times longer the work takes here than on the reference machine."""
    return statistics.median(_round() for _ in range(ROUNDS)) / REFERENCE_SECONDS


def _round() -> float:
    """Return the seconds of the slowest of the processes."""
    command = [sys.executable, "-S", "-c", WORK]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(PROCESSES)]
    return max(float(process.communicate()[0]) for process in processes)
