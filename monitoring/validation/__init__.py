"""Tests of a node's GPUs: a Job that adds two vectors with CUDA on one free GPU, and what is read of it.

an admin, `manage.py validate`
  └─▶ starting.py    is there a GPU that nobody has? then a row, and a task
        └─▶ steps.py    make the Job, look until it has ended, keep its log and result, take the Job away
              manifests.py, reading.py    pure: the Job; what its objects and its log say
queries.py, words.py    the last result of each node, in words
keeping.py    for how long they are kept
"""
