"""Intake of reports from node agents.

POST /api/v1/agent/samples/, agent/health/ (api.py)
  tokens.py     the cluster whose agents these are
  checks.py     checks the body against the agent's schema, or refuses it in words
  receive.py    one transaction: what is new, converted to Berth's clock
    states.py     the row of the node's agent
    holders.py    the runs that have each GPU
    gpus.py       the rows of the node's GPUs
    ../figures/store.py, ../health/judging.py
rows.py         fast reads of rows
ecc.py          labels nodes, so that pools can choose ECC
"""
