"""Alerts: what is wrong, grouped, told once to those who want to know, and the trace of each message.

`sources.py` says what fires now; `raising.py` turns it into alerts by `grouping.py` (pure); `deliveries.py` decides who
is told, and `sending.py` tells them by `ways.py` (pure).
"""
