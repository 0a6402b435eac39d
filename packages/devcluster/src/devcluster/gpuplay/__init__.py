"""Simulated GPUs: the pods that hold each card, their use of it, its faults, and the reports to the portal.

- `hardware` cards of a node, by its entry in the node file
- `devices` devices that each container gets, as a kubelet's device manager gives them out
- `lives` how busy a pod keeps its GPU, by a described life; `users` the processes on each card at a moment
- `ailments` faults of a card: Xid, ECC, rows, a lost card; and problems that the node's agent finds
- `readings` values that a query of a card then returns
- `agent` simulated agent: the same pushes that the real one sends, marked as simulated
"""
