"""Short digest of a JSON value. Equal values have equal digests, whatever the order of their keys."""

import hashlib
import json
from typing import Any

HASH = "berth.dev/hash"  # annotation that holds the digest


def digest_of(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]
