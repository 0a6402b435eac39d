"""GPUs as NVIDIA's dcgm-exporter tells them to a Prometheus that is there already: beside agents or in their place.

readings.py    every fifteen seconds, who is asked, and what becomes of the answer
  prometheus.py   one question to Prometheus: bounded in time and size, and what can go wrong
  translation.py  pure: its series into the batches that nodes' agents send, taken in by monitoring/intake
  xids.py         pure: which errors are new, by gauges that do not list them
"""
