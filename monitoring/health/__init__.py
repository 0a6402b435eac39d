"""How clusters, nodes and GPUs are: what is wrong, what takes nothing new for it, and who hears of it.

reports of agents, changes of nodes, events of the cluster, the tick
  └─▶ judging.py    reads rows, decides by rules.py (pure), writes troubles and what is out
        └─▶ telling.py    brings each workspace's story and message to what its node and GPUs suffer from
drain.py, trusting.py    what an admin does about a node, and about a GPU
"""
