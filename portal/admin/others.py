"""Pages that other packages bring along: not ours to show, since what they change would be on no record."""

from __future__ import annotations

from django.contrib import admin

OURS = {"accounts", "clusters", "quotas", "workspaces", "monitoring"}

for model in list(admin.site._registry):
    if model._meta.app_label not in OURS:
        admin.site.unregister(model)
