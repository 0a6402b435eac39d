"""Bodies that make one of each object that people make."""

from __future__ import annotations

from datetime import timedelta

from tests.portal.isolation import TOMORROW

LAUNCH = {"tenant": "demo", "name": "exp-9", "image": "jupyter", "flavor": "a100-1"}
TEMPLATE = {"tenant": "demo", "name": "Week 3", "launch": {"image": "jupyter", "flavor": "a100-1"}}
CLASS = {"tenant": "demo", "name": "Week 3", "launch": TEMPLATE["launch"], "people": ["bob", "nobody"]}
JOB = LAUNCH | {"command": ["true"]}
VOLUME = {"tenant": "demo", "name": "disk", "kind": "disk", "size_mib": 1024}
FOREIGN = {"tenant": "demo", "owner": "bob", "name": "scans", "kind": "dataset", "persistent_volume": "pv-1"}
CONNECTION = {
    "tenant": "demo", "name": "lab", "endpoint": "https://s3.example.org", "bucket": "scans",
    "access_key": "AK", "secret_key": "sk",
}  # fmt: skip
ROUTE = {"tenant": "demo", "name": "hook", "way": "webhook", "address": "https://hook.example.org/x"}
SCHEDULE = {"start": "09:00", "stop": "18:00", "days": [1, 2, 3, 4, 5], "time_zone": "Europe/Berlin"}
BOOKING = {
    "tenant": "demo",
    "pool": "a100",
    "title": "class",
    "from": TOMORROW.isoformat(),
    "to": (TOMORROW + timedelta(hours=1)).isoformat(),
}
