"""Authentication: the admin by the kubeconfig's token, service accounts by theirs, impersonation, anonymous."""

import hmac
from collections.abc import Iterator, Sequence
from dataclasses import replace

from multidict import CIMultiDictProxy

from devcluster.access import rbac
from devcluster.access.rbac import Ask, User
from devcluster.access.tokens import ISSUER, InvalidToken, Tokens
from devcluster.errors import ApiError, bad_request
from devcluster.resources import SERVICE_ACCOUNT
from devcluster.store import Store

Headers = CIMultiDictProxy[str]

AUTHENTICATED = "system:authenticated"
ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
ADMIN = User("admin", (rbac.MASTERS, AUTHENTICATED))
_EXTRA = "impersonate-extra-"


class Authentication:
    def __init__(self, store: Store, admin_token: str, tokens: Tokens):
        self._store, self._admin, self.tokens = store, admin_token.encode(), tokens

    def user(self, headers: Headers, ask: Ask) -> User:
        given = headers.get("Authorization", "")
        scheme, _, token = given.partition(" ")
        if given and scheme.lower() != "bearer":
            raise ApiError(401, "Unauthorized", "Unauthorized")
        try:
            user = self.bearer(token.strip()) if given else ANONYMOUS
        except InvalidToken as error:
            raise ApiError(401, "Unauthorized", "Unauthorized") from error
        return self._impersonated(user, headers, ask)

    def bearer(self, token: str, audiences: Sequence[str] = (ISSUER,)) -> User:
        if hmac.compare_digest(token.encode(), self._admin):
            return ADMIN
        return self.tokens.user(token, audiences)

    def _impersonated(self, user: User, headers: Headers, ask: Ask) -> User:
        wanted = _wanted(headers)
        if wanted is None:
            return user
        mode = "serviceaccount" if _account(wanted.name) else "user-info"
        for needed in _needed(wanted):
            found = rbac.verdict(self._store, user, needed)
            if not found.allowed:
                # 1.36 checks the right to impersonate for this one request last, and names it in the refusal.
                raise rbac.refusal(user, replace(ask, verb=f"impersonate-on:{mode}:{ask.verb}"), found.reason)
        groups = wanted.groups
        if (account := _account(wanted.name)) and not groups:
            groups = rbac.account_groups(account[0])
        everybody = ANONYMOUS.groups if wanted.name == ANONYMOUS.name else (AUTHENTICATED,)
        return replace(wanted, groups=(*groups, *(g for g in everybody if g not in groups)))


def _wanted(headers: Headers) -> User | None:
    """Return the user that the headers impersonate, if any."""
    extra: dict[str, list[str]] = {}
    for name, value in headers.items():
        if name.lower().startswith(_EXTRA):
            extra.setdefault(name.lower().removeprefix(_EXTRA), []).append(value)
    name, uid = headers.get("Impersonate-User", ""), headers.get("Impersonate-Uid", "")
    groups = tuple(headers.getall("Impersonate-Group", []))
    if not name and (groups or uid or extra):
        raise bad_request("requested to impersonate groups, a uid or extra without impersonating a user name")
    return User(name, groups, uid, extra) if name else None


def _account(name: str) -> tuple[str, str] | None:
    """Return namespace and name of a service account."""
    parts = name.split(":")
    return (parts[2], parts[3]) if parts[:2] == ["system", "serviceaccount"] and len(parts) == 4 else None


def _needed(wanted: User) -> Iterator[Ask]:
    """Yield the rights that impersonating this user takes."""
    if account := _account(wanted.name):
        yield Ask("impersonate", "", SERVICE_ACCOUNT.plural, namespace=account[0], name=account[1])
    else:
        yield Ask("impersonate", "", "users", name=wanted.name)
    for group in wanted.groups:
        yield Ask("impersonate", "", "groups", name=group)
    if wanted.uid:
        yield Ask("impersonate", "authentication.k8s.io", "uids", name=wanted.uid)
    for key, values in wanted.extra.items():
        for value in values:
            yield Ask("impersonate", "authentication.k8s.io", "userextras", key, name=value)
