"""Refusals in the OpenAPI schema: one helper, so that all endpoints document them alike."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiResponse

from accounts.rest.serializers import ErrorBody

MEANINGS = {
    400: "What was sent is not right: see `fields`.",
    401: "Not signed in, or the token is not valid.",
    403: "Seen, but not allowed: the role or the token's scope is missing.",
    404: "Does not exist, or belongs to a tenant that you are not in.",
    409: "Does not go together with what is there.",
    413: "More than is taken at once.",
    415: "Not in a form that is understood: see Content-Type.",
    422: "Understood, but cannot be: see `fields`.",
    429: "Too many: wait as long as Retry-After says.",
    503: "The database cannot handle this request right now.",
}


def answers(success: dict[int, Any], *refusals: int) -> dict[int, Any]:
    """Return `responses` for `extend_schema`: the successes, and the refusals by status; some hold everywhere."""
    statuses = sorted({400, 401, 403, 429, 503, *refusals})
    return success | {status: OpenApiResponse(ErrorBody, description=MEANINGS[status]) for status in statuses}


IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Your own word for this request: sent again within 24 hours it gets the same answer.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[ -~]+$"},
}


def with_idempotency_key(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Document, as a hook of drf-spectacular, that a POST takes a key, and refuses one used with another body."""
    for operations in result["paths"].values():
        if (post := operations.get("post")) is not None:
            post["parameters"] = [*post.get("parameters", []), IDEMPOTENCY_KEY]
            post["responses"].setdefault("409", {**post["responses"]["400"], "description": MEANINGS[409]})
    return result


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "accounts.rest.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A token from your profile: `brt_…`"}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "accounts.rest.authentication.SignedInSession"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}
