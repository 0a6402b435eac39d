"""GPUs that are played: which pod holds which card, what it does there, what breaks, and who tells the portal of it.

- `hardware` what cards a node has, by its entry in the node file
- `devices` which of them each container gets, as a kubelet's device manager gives them out
- `lives` how busy a pod keeps its GPU, by a described life; `users` who computes where at a moment
- `ailments` what breaks a card: Xid, ECC, rows, a card that is lost; and what the node's agent finds missing
- `readings` what a look at a card finds then
- `agent` the simulated agent: the same pushes that the real one sends, marked as simulated
"""
