"""Post-mortems: a record of each run that failed, was evicted or interrupted, whole when the cluster has forgotten it.

`opening.py` begins a record in the transaction of the end. `pods.py` notes what the watch tells of pods, `filling.py`
gathers the rest (`gathering.py`) and decides what explains it best (`verdicts.py`, pure). `groups.py` (pure but for one
query) finds those that are alike.
"""
