"""Why something in a cluster does not go on: tables from the cluster's words to a code, a sentence and what to do.

Everything here is pure. Patterns were taken from messages seen on Kubernetes 1.36 and in public issue threads.
"""
