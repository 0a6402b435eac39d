"""Causes of problems in a cluster: tables from the cluster's words to a code, a sentence and what to do.

All modules are pure. Patterns were taken from messages seen on Kubernetes 1.36 and in public issue threads.
"""
