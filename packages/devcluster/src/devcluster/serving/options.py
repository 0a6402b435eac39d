"""Options in a request's query: contradictions are refused, as apimachinery words it."""

from collections.abc import Iterator

from devcluster.errors import Cause, bad_request, forbidden_field, invalid, not_supported, required
from devcluster.resources import Kind
from devcluster.serving.requests import Query

_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_MATCH = "resourceVersionMatch"
_NUMBERS = ("limit", "timeoutSeconds")


def check_write(query: Query, options: str, applies: bool = False) -> None:
    """Refuse contradictory options of a write. `options` is CreateOptions, UpdateOptions or PatchOptions."""
    _refuse(options, [*_write(query, options, applies)])


def check_list(query: Query, watches: bool) -> None:
    for name in _NUMBERS:
        text = query.get(name) or "0"
        if not text.lstrip("+-").isdigit():
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    _refuse("ListOptions", [*(_watch(query) if watches else _list(query))])


def _refuse(options: str, causes: list[Cause]) -> None:
    if causes:
        raise invalid(Kind("meta.k8s.io", "v1", options, options.lower()), "", causes)


def _write(query: Query, options: str, applies: bool) -> Iterator[Cause]:
    manager, validation = query.get("fieldManager", ""), query.get("fieldValidation", "")
    if applies and not manager:
        yield required("fieldManager", "is required for apply patch")
    if len(manager.encode()) > 128:
        yield Cause("FieldValueTooLong", "fieldManager", "Too long: may not be more than 128 bytes")
    if "force" in query and options == "PatchOptions" and not applies:
        yield forbidden_field("force", "may not be specified for non-apply patch")
    if query.get("dryRun", "") not in ("", "All"):
        yield not_supported("dryRun", [query["dryRun"]], ["All"])
    if validation not in _VALIDATIONS:
        yield not_supported("fieldValidation", validation, _VALIDATIONS)


def _list(query: Query) -> Iterator[Cause]:
    match, version = query.get(_MATCH, ""), query.get("resourceVersion", "")
    if match:
        if not version:
            yield forbidden_field(_MATCH, f"{_MATCH} is forbidden unless resourceVersion is provided")
        if query.get("continue"):
            yield forbidden_field(_MATCH, f"{_MATCH} is forbidden when continue is provided")
        if match not in ("Exact", "NotOlderThan"):
            yield not_supported(_MATCH, match, ["Exact", "NotOlderThan", ""])
        if match == "Exact" and version == "0":
            yield forbidden_field(_MATCH, f'{_MATCH} "exact" is forbidden for resourceVersion "0"')
    if "sendInitialEvents" in query:
        yield forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list")


def _watch(query: Query) -> Iterator[Cause]:
    match = query.get(_MATCH, "")
    if query.get("continue"):
        yield forbidden_field(_MATCH, f"{_MATCH} is forbidden when continue is provided")
    if "sendInitialEvents" not in query:
        if match:
            yield forbidden_field(
                _MATCH, f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided"
            )
        return
    if match != "NotOlderThan":
        yield forbidden_field(_MATCH, f"sendInitialEvents requires setting {_MATCH} to NotOlderThan")
        if match:
            yield not_supported(_MATCH, match, ["NotOlderThan"])
