"""Access reviews, answered and not stored: who am I, may I, may they, whose token is this."""

from devcluster.access import rbac
from devcluster.access.authentication import Authentication
from devcluster.access.rbac import Ask, User
from devcluster.access.tokens import ISSUER, InvalidToken
from devcluster.errors import ApiError, Cause, bad_request, invalid, invalid_value
from devcluster.resources import (
    ACCESS_REVIEW,
    RULES_REVIEW,
    SELF_REVIEW,
    TOKEN_REVIEW,
    Kind,
    Obj,
)
from devcluster.serving.views import typed
from devcluster.store import Store
from devcluster.typed import apply
from devcluster.values.clock import now


class Reviews:
    def __init__(self, store: Store, authentication: Authentication):
        self._store, self._authentication = store, authentication

    def answer(self, kind: Kind, body: Obj, user: User, manager: str) -> Obj:
        spec = body.get("spec") or {}
        if kind is SELF_REVIEW:
            return typed(
                kind, {"metadata": {"creationTimestamp": now()}, "status": {"userInfo": _told(user)}}
            )
        if kind is RULES_REVIEW:
            return typed(kind, {"metadata": {}, "spec": {}, "status": self._rules(spec, user)})
        status = self._token(spec) if kind is TOKEN_REVIEW else self._access(kind, spec, user)
        answered: Obj = {"metadata": {}, "spec": spec}
        apply.track_update(kind, None, answered, manager)
        return typed(kind, answered | {"status": status})

    def _access(self, kind: Kind, spec: Obj, user: User) -> Obj:
        ask = _ask(kind, spec)
        if kind is ACCESS_REVIEW:
            if not spec.get("user") and not spec.get("groups"):
                why = "at least one of user or group must be specified"
                raise _invalid(kind, invalid_value("spec.user", spec.get("user", ""), why))
            extra = spec.get("extra") or {}
            user = User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra)
        found = rbac.verdict(self._store, user, ask)
        return {"allowed": found.allowed} | ({"reason": found.reason} if found.reason else {})

    def _rules(self, spec: Obj, user: User) -> Obj:
        """Return the user's rights in a namespace."""
        if not spec.get("namespace"):
            raise bad_request("no namespace on request")
        held = rbac.holdings(self._store, user, spec["namespace"])
        rules: list[Obj] = held.rules
        status: Obj = {
            "resourceRules": [_without(r, "nonResourceURLs") for r in rules if r.get("resources")],
            "nonResourceRules": [
                {k: r[k] for k in ("verbs", "nonResourceURLs")} for r in rules if r.get("nonResourceURLs")
            ],
            "incomplete": False,
        }
        return status | ({"evaluationError": held.told_errors} if held.errors else {})

    def _token(self, spec: Obj) -> Obj:
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        audiences = spec.get("audiences") or [ISSUER]
        try:
            user = self._authentication.bearer(spec["token"], audiences)
        except InvalidToken as error:
            told = f"[invalid bearer token, {error}]" if str(error) else "invalid bearer token"
            return {"user": {}, "error": told}
        return {"authenticated": True, "user": _told(user), "audiences": audiences}


def _told(user: User) -> Obj:
    told = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": dict(user.extra)}
    return {k: v for k, v in told.items() if v}


def _ask(kind: Kind, spec: Obj) -> Ask:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        why = "cannot be specified in combination with resourceAttributes"
        raise _invalid(kind, invalid_value("spec.nonResourceAttributes", path, why))
    if path is not None:
        return Ask(path.get("verb", ""), path=path.get("path", ""))
    if resource is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise _invalid(kind, invalid_value("spec.resourceAttributes", None, why))
    parts = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Ask(**{part: resource.get(part, "") for part in parts})


def _invalid(kind: Kind, cause: Cause) -> ApiError:
    """Return a refusal without the kind's name, as these kinds have it."""
    return invalid(Kind(kind.group, kind.version, "", kind.plural), "", [cause])


def _without(rule: Obj, member: str) -> Obj:
    return {k: v for k, v in rule.items() if k != member}
