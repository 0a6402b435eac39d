"""What the watcher tells the rooms above. Receivers must be quick: they mark rows and enqueue."""

from django.dispatch import Signal

# Objects that carry our labels (or events about such) were added, modified or deleted.
# Arguments: cluster (Cluster), changes (list of watching.Changed, one for each object; of what vanished during a gap
# only kind, metadata and the last phase are known).
objects_changed = Signal()

# Nodes, or what pods take of them, changed: somebody who waits may fit now. Arguments: cluster (Cluster).
capacity_changed = Signal()

# Their rows changed, or went. Arguments: cluster (Cluster), names (set of str).
nodes_changed = Signal()

# Listed anew after a gap: whoever was missed must be looked at again. Arguments: cluster (Cluster).
relisted = Signal()

# It went away, or answers again: its row says which. Arguments: cluster (Cluster).
reachability_changed = Signal()

# What our pods use, as metrics-server has it; told by a thread of its own, about every fifteen seconds.
# Arguments: cluster (Cluster), measured (list of pod_metrics.Measured).
pods_measured = Signal()

# Doctor looks at a cluster: what the rooms above have to say of it. Arguments: cluster (Cluster), api (Api). Receivers
# answer with findings (doctor.Finding), and may let a ClusterError through.
examined = Signal()

# Every five seconds while this process leads the watch: for periodic passes of the rooms above. No arguments.
tick = Signal()
