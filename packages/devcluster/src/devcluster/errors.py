"""Refusals of the API server: Status objects with the reasons, codes and words that clients look for."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from devcluster.resources import Kind, Obj


class ApiError(Exception):
    """Refusal of a call; `status` is the Status that the client gets."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Obj | None = None,
        headers: dict[str, str] | None = None,
    ):
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details
        self.headers = headers or {}
        self.metadata: Obj = {}

    @property
    def status(self) -> Obj:
        body: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata, "status": "Failure"}
        body["message"] = self.message
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


@dataclass(frozen=True)
class Cause:
    """Error in one field, as field.Error of apimachinery renders it."""

    reason: str
    field: str
    message: str


def _go(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def required(field: str, detail: str = "") -> Cause:
    return Cause("FieldValueRequired", field, "Required value" + (f": {detail}" if detail else ""))


def invalid_value(field: str, value: Any, detail: str) -> Cause:
    return Cause("FieldValueInvalid", field, f"Invalid value: {_go(value)}: {detail}")


def forbidden_field(field: str, detail: str) -> Cause:
    return Cause("FieldValueForbidden", field, f"Forbidden: {detail}")


def duplicate(field: str, value: Any) -> Cause:
    return Cause("FieldValueDuplicate", field, f"Duplicate value: {_go(value)}")


def field_not_found(field: str, value: Any) -> Cause:
    return Cause("FieldValueNotFound", field, f"Not found: {_go(value)}")


def not_supported(field: str, value: Any, supported: Sequence[str]) -> Cause:
    choices = ", ".join(_go(s) for s in supported)
    return Cause(
        "FieldValueNotSupported", field, f"Unsupported value: {_go(value)}: supported values: {choices}"
    )


def _details(kind: Kind, name: str = "", **more: Any) -> Obj:
    details: Obj = {}
    if name:
        details["name"] = name
    if kind.group:
        details["group"] = kind.group
    details["kind"] = kind.plural
    return {**details, **more}


def not_found(kind: Kind, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{kind.qualified} "{name}" not found', _details(kind, name))


def already_exists(kind: Kind, name: str) -> ApiError:
    return ApiError(409, "AlreadyExists", f'{kind.qualified} "{name}" already exists', _details(kind, name))


def conflict(kind: Kind, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(kind, name))


def modified(kind: Kind, name: str) -> ApiError:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(kind, name, why)


def precondition(kind: Kind, name: str, why: str) -> ApiError:
    """Return a failed precondition, which names the Go type where other conflicts name the resource."""
    details = {"name": name, "kind": kind.kind} | ({"group": kind.group} if kind.group else {})
    message = f'Operation cannot be fulfilled on {kind.qualified_kind} "{name}": {why}'
    return ApiError(409, "Conflict", message, details)


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def forbidden(kind: Kind, name: str, why: str, causes: list[Obj] | None = None) -> ApiError:
    more = {"causes": causes} if causes else {}
    subject = f'{kind.qualified} "{name}" is forbidden: ' if name else f"{kind.qualified} is forbidden: "
    return ApiError(403, "Forbidden", subject + why, _details(kind, name, **more))


def namespace_terminating(kind: Kind, name: str, namespace: str) -> ApiError:
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    return forbidden(kind, name, why, [cause])


def invalid(kind: Kind, name: str, causes: Sequence[Cause]) -> ApiError:
    words = list(dict.fromkeys(f"{c.field}: {c.message}" for c in causes))
    joined = words[0] if len(words) == 1 else f"[{', '.join(words)}]"
    details: Obj = {"name": name} if name else {}
    if kind.group:
        details["group"] = kind.group
    if kind.kind:
        details["kind"] = kind.kind
    details["causes"] = [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    return ApiError(422, "Invalid", f'{kind.qualified_kind} "{name}" is invalid: {joined}', details)


def expired(rv: int, oldest: int) -> ApiError:
    return ApiError(410, "Expired", f"too old resource version: {rv} ({oldest})")


def method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})


def no_such_resource() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})
