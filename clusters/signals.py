"""Signals from the watcher to the rooms above. Receivers must be quick: they update rows and enqueue."""

from django.dispatch import Signal

# Objects with our labels, or events about such objects, were added, modified or deleted.
# Arguments: cluster (Cluster), changes (list of watching.Changed, one per object; for an object that vanished during
# a gap, only kind, metadata and the last phase are known).
objects_changed = Signal()

# Nodes, or what pods take of them, changed: a waiting request may fit now. Arguments: cluster (Cluster).
capacity_changed = Signal()

# Rows of nodes changed or were deleted. Arguments: cluster (Cluster), names (set of str).
nodes_changed = Signal()

# Everything was listed anew after a gap: reconcile what may have changed unseen. Arguments: cluster (Cluster).
relisted = Signal()

# The cluster went away or answers again: its row says which. Arguments: cluster (Cluster).
reachability_changed = Signal()

# Networks of the cluster were found that differ from those before: policies made from them differ, too.
# Arguments: cluster (Cluster).
networks_changed = Signal()

# Usage of our pods from metrics-server, sent by a thread of its own about every fifteen seconds.
# Arguments: cluster (Cluster), measured (list of pod_metrics.Measured).
pods_measured = Signal()

# Every five seconds while this process leads the watch: for periodic passes of the rooms above. No arguments.
tick = Signal()
