"""Health of clusters, nodes and GPUs: problems, what they take out of use, and who is notified.

reports of agents, changes of nodes, events of the cluster, the tick
  └─▶ judging.py    reads rows, decides by rules.py (pure), writes troubles and what is out of use
        └─▶ notifying.py    updates each workspace's story and message with the problems of its node and GPUs
drain.py, trusting.py    actions of an admin on a node, and on a GPU
"""
