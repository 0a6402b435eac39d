"""Write the golden manifests again."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup()

from tests.workspaces.cluster.shared_manifests import CASES, manifest, path  # noqa: E402

for name in CASES:
    path(name).write_text(manifest(name))
