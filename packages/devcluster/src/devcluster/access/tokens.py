"""Tokens of service accounts: JSON Web Tokens, signed, expiring, and bound to the account and, on request, to a pod.

A token is valid only while its bound objects exist: the account, the pod or the secret, each identified by its uid.
"""

import base64
import hashlib
import json
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from devcluster.access import rbac
from devcluster.access.rbac import User
from devcluster.errors import conflict, invalid, invalid_value, not_found
from devcluster.instance import write_private
from devcluster.resources import NODE, POD, SECRET, SERVICE_ACCOUNT, TOKEN_REQUEST, Kind, Obj
from devcluster.serving.views import typed
from devcluster.store import Store
from devcluster.typed import apply

ISSUER = "https://kubernetes.default.svc"
DEFAULT_SECONDS, LEAST_SECONDS = 3600, 600
LEEWAY_SECONDS = 60
"""For how long a token still serves what is being deleted."""
_BOUND_TO = {kind.kind: kind for kind in (POD, SECRET)}
_EXTRA = "authentication.kubernetes.io"
_CURVE, _HASH = ec.SECP256R1(), ec.ECDSA(hashes.SHA256())


class InvalidToken(Exception):
    """Refusal of a token; the message is the error of a TokenReview."""


class Tokens:
    def __init__(self, store: Store, state: Path):
        self._store = store
        self._key = _key(state / "token-key.pem")
        self._public = self._key.public_key()
        der = self._public.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self._head = {"alg": "ES256", "kid": _text(hashlib.sha256(der).digest())}

    def answer(self, namespace: str, name: str, body: Obj, manager: str) -> Obj:
        """Answer a TokenRequest."""
        given = body.get("spec") or {}
        seconds = given.get("expirationSeconds") or DEFAULT_SECONDS
        audiences, bound = given.get("audiences") or [ISSUER], given.get("boundObjectRef")
        if seconds < LEAST_SECONDS:
            why = "may not specify a duration less than 10 minutes"
            raise invalid(TOKEN_REQUEST, "", [invalid_value("spec.expirationSeconds", seconds, why)])
        account = self._store.get(SERVICE_ACCOUNT, namespace, name)
        if account is None:
            raise not_found(SERVICE_ACCOUNT, name)
        token, expires = self._issue(account, audiences, seconds, self._bound(namespace, bound))
        answered: Obj = {"metadata": {}, "spec": given | {"expirationSeconds": seconds}}
        apply.track_update(TOKEN_REQUEST, None, answered, manager, "token")
        known = {k: account["metadata"][k] for k in ("name", "namespace", "uid", "creationTimestamp")}
        answered["metadata"] = known | answered["metadata"]
        answered["spec"] = {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": bound}
        when = datetime.fromtimestamp(expires, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return typed(TOKEN_REQUEST, answered | {"status": {"token": token, "expirationTimestamp": when}})

    def for_pod(self, pod: Obj, audience: str, seconds: int) -> str:
        """Return the token that the kubelet puts into a pod's token volume."""
        namespace = pod["metadata"]["namespace"]
        account = self._store.get(SERVICE_ACCOUNT, namespace, pod["spec"]["serviceAccountName"])
        if account is None:
            raise not_found(SERVICE_ACCOUNT, pod["spec"]["serviceAccountName"])
        return self._issue(account, [audience or ISSUER], seconds, (POD, pod))[0]

    def _bound(self, namespace: str, reference: Obj | None) -> tuple[Kind, Obj] | None:
        if not reference:
            return None
        kind, name = _BOUND_TO.get(reference.get("kind", "")), reference.get("name", "")
        if kind is None:
            why = "bound objects are pods and secrets"
            raise invalid(
                TOKEN_REQUEST, "", [invalid_value("spec.boundObjectRef", reference.get("kind"), why)]
            )
        obj = self._store.get(kind, namespace, name)
        if obj is None:
            raise not_found(kind, name)
        if reference.get("uid") not in (None, "", obj["metadata"]["uid"]):
            uids = f"({reference['uid']}) does not match the UID in record ({obj['metadata']['uid']})"
            gone = "The object might have been deleted and then recreated"
            raise conflict(kind, name, f"the UID in the bound object reference {uids}. {gone}")
        return kind, obj

    def _issue(
        self, account: Obj, audiences: list[str], seconds: int, bound: tuple[Kind, Obj] | None
    ) -> tuple[str, int]:
        """Return the token, and its expiry as a Unix time."""
        meta, at = account["metadata"], int(time.time())
        about: Obj = {"namespace": meta["namespace"], "serviceaccount": _reference(account)}
        if bound:
            about[bound[0].kind.lower()] = _reference(bound[1])
            node = self._store.get(NODE, "", bound[1].get("spec", {}).get("nodeName", ""))
            if node:
                about["node"] = _reference(node)
        claims = {
            "aud": audiences,
            "exp": at + seconds,
            "iat": at,
            "iss": ISSUER,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": about,
            "nbf": at,
            "sub": rbac.account_name(meta["namespace"], meta["name"]),
        }
        signed = f"{_text(_json(self._head))}.{_text(_json(claims))}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), _HASH))
        return f"{signed}.{_text(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}", at + seconds

    def user(self, token: str, audiences: Sequence[str] = (ISSUER,)) -> User:
        """Return the user of a token; raise InvalidToken if the token is not ours or no longer valid."""
        claims = self._claims(token)
        if not set(audiences) & set(claims["aud"]):
            given, wanted = (json.dumps(list(a)).replace(",", "") for a in (claims["aud"], audiences))
            raise InvalidToken(f"token audiences {given} is invalid for the target audiences {wanted}")
        if not claims["nbf"] <= time.time() < claims["exp"]:
            raise InvalidToken("service account token has expired")
        about = claims["kubernetes.io"]
        namespace, account = about["namespace"], about["serviceaccount"]
        self._still_there(SERVICE_ACCOUNT, namespace, account)
        extra = {f"{_EXTRA}/credential-id": [f"JTI={claims['jti']}"]}
        for kind in _BOUND_TO.values():
            if bound := about.get(kind.kind.lower()):
                self._still_there(kind, namespace, bound)
        for part in ("node", "pod"):
            if found := about.get(part):
                extra |= {f"{_EXTRA}/{part}-name": [found["name"]], f"{_EXTRA}/{part}-uid": [found["uid"]]}
        groups = (*rbac.account_groups(namespace), "system:authenticated")
        return User(claims["sub"], groups, account["uid"], extra)

    def _still_there(self, kind: Kind, namespace: str, reference: Obj) -> None:
        found = self._store.get(kind, namespace, reference["name"])
        if found is None or found["metadata"]["uid"] != reference["uid"]:
            raise InvalidToken(f"{kind.kind.lower()} {namespace}/{reference['name']} has been deleted")
        if ended := found["metadata"].get("deletionTimestamp"):
            since = datetime.now(UTC) - datetime.fromisoformat(ended)
            if since.total_seconds() > LEEWAY_SECONDS:
                raise InvalidToken(f"{kind.kind.lower()} {namespace}/{reference['name']} has been deleted")

    def _claims(self, token: str) -> Obj:
        try:
            signed, _, signature = token.rpartition(".")
            raw, claims = _bytes(signature), json.loads(_bytes(signed.partition(".")[2]))
            r, s = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
            self._public.verify(encode_dss_signature(r, s), signed.encode(), _HASH)
        except (ValueError, InvalidSignature) as error:
            raise InvalidToken("") from error
        return dict(claims)


def _reference(obj: Obj) -> Obj:
    return {"name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}


def _key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Return the signing key, stored so that tokens outlive a restart."""
    if not path.exists():
        made = ec.generate_private_key(_CURVE).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        write_private(path, made.decode())
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def _json(value: Obj) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
