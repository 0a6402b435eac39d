"""GPU data from NVIDIA's dcgm-exporter, through an existing Prometheus: beside agents, or in their place.

readings.py     reads each Prometheus every fifteen seconds and takes in the answer
prometheus.py   one query to Prometheus: limited in time and size, with its errors
translation.py  pure: series into the batches that node agents send, for monitoring/intake
xids.py         pure: new errors, derived from gauges that do not list them
"""
