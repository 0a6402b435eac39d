"""Counters of the collector, for /metrics."""

from vitals.figures import Counter, Gauge

LINES = Counter("berth_log_lines", "Lines of logs that were stored.")
BYTES = Counter("berth_log_bytes", "Their text, in bytes.")
DROPPED = Counter("berth_log_lines_dropped", "Lines beyond the pace of one container.")
FOLLOWED = Gauge("berth_logs_followed", "Containers whose log is followed.")
