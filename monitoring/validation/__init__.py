"""Tests of a node's GPUs: a Job that adds two vectors with CUDA on one free GPU, and its result.

an admin, `manage.py validate`
  └─▶ starting.py    is a GPU free? then a row, and a task
        └─▶ steps.py    create the Job, look until it has ended, keep its log and result, delete the Job
              manifests.py, reading.py    pure: the Job; the meaning of its objects and its log
queries.py, words.py    the last result of each node, as text
keeping.py    how long results are kept
"""
