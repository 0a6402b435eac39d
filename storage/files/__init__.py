"""Files of a volume while nothing runs: a small pod without a GPU mounts it and serves them to Berth alone."""
