"""A short digest of a JSON value: equal wants have equal digests, whatever the order of their keys."""

import hashlib
import json
from typing import Any

HASH = "berth.dev/hash"  # the annotation that carries it


def digest_of(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]
