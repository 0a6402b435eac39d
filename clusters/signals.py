"""What the watcher tells the rooms above. Receivers must be quick: they mark rows and enqueue."""

from django.dispatch import Signal

# An object that carries our labels (or an event about one) was added, modified or deleted.
# Arguments: cluster (Cluster), kind (str, as "Pod"), change ("ADDED" | "MODIFIED" | "DELETED"), body (dict, raw JSON).
object_changed = Signal()

# Nodes, or what pods take of them, changed: somebody who waits may fit now. Arguments: cluster (Cluster).
capacity_changed = Signal()

# Everything was listed anew after a gap: whoever was missed must be looked at again. Arguments: cluster (Cluster).
relisted = Signal()
