"""Removal of other packages' admin pages: their changes would not be recorded in the audit trail."""

from __future__ import annotations

from django.contrib import admin

OURS = {"accounts", "clusters", "quotas", "storage", "workloads", "workspaces", "jobs", "monitoring"}

for model in list(admin.site._registry):
    if model._meta.app_label not in OURS:
        admin.site.unregister(model)
