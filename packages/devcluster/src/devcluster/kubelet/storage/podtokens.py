"""Service account tokens of one pod, made when first needed and renewed when most of their time is over."""

import time

from devcluster.access.tokens import Tokens
from devcluster.resources import Obj

DEFAULT_SECONDS = 3600
KEPT_FOR = 0.8
"""Of its time; then the kubelet asks for the next one."""


class PodTokens:
    def __init__(self, tokens: Tokens, pod: Obj):
        self._tokens, self._pod = tokens, pod
        self._held: dict[tuple[str, int], tuple[float, str]] = {}
        """By audience and lifetime: until when each is given out, and the token."""

    def current(self, source: Obj) -> str:
        """Return the token for a `serviceAccountToken` of a projected volume."""
        key = source.get("audience", ""), source.get("expirationSeconds", DEFAULT_SECONDS)
        until, token = self._held.get(key, (0.0, ""))
        if time.time() >= until:
            until, token = time.time() + KEPT_FOR * key[1], self._tokens.for_pod(self._pod, *key)
            self._held[key] = until, token
        return token
