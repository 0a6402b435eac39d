"""GPU data from NVIDIA's dcgm-exporter, through an existing Prometheus: beside agents, or in their place."""
