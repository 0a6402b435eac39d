"""Logs of workspaces and jobs, kept when their pods are gone: collected, stored, read, followed."""
