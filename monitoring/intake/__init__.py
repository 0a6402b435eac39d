"""What nodes' agents tell, taken in.

POST /api/v1/agent/samples/, agent/health/ (api.py)
  tokens.py     which cluster's agents these are
  checks.py     the body is what the agent's schema says, or is refused in words
  receive.py    one transaction: what is new of it, at which time of ours
    states.py     the row of the node's agent
    holders.py    which runs have which GPU
    gpus.py       the rows of the node's GPUs
    ../figures/store.py, ../health/judging.py
rows.py         how rows are read so often
ecc.py          nodes get the label by which pools choose ECC
"""
