"""Node affinity and tolerations of a pod, refused in the API server's words."""

from collections.abc import Iterator

from devcluster.errors import Cause, forbidden_field, invalid_value, not_supported, required
from devcluster.resources import Obj
from devcluster.values.names import KEY_NAME, LABEL_VALUE, NOT_A_KEY_NAME, NOT_A_LABEL_VALUE

_REQUIRED, _PREFERRED = (
    f"{when}DuringSchedulingIgnoredDuringExecution" for when in ("required", "preferred")
)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATED = ("Equal", "Exists")
_NUMERIC = ("Lt", "Gt")  # operators of tolerations that are known, but need a feature gate
_NO_OPERATOR = "not a valid selector operator"


def validate(spec: Obj, at: str) -> Iterator[Cause]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    below = f"{at}.affinity.nodeAffinity"
    if (wanted := affinity.get(_REQUIRED)) is not None:
        terms = wanted.get("nodeSelectorTerms") or []
        if not terms:
            why = "must have at least one node selector term"
            yield required(f"{below}.{_REQUIRED}.nodeSelectorTerms", why)
        for n, term in enumerate(terms):
            yield from _term(term, f"{below}.{_REQUIRED}.nodeSelectorTerms[{n}]")
    for n, wish in enumerate(affinity.get(_PREFERRED) or []):
        place = f"{below}.{_PREFERRED}[{n}]"
        if not 1 <= (weight := wish.get("weight", 0)) <= 100:
            yield invalid_value(f"{place}.weight", weight, "must be in the range 1-100")
        yield from _term(wish.get("preference") or {}, f"{place}.preference")
    for n, toleration in enumerate(spec.get("tolerations") or []):
        yield from _toleration(toleration, f"{at}.tolerations[{n}]")


def _term(term: Obj, at: str) -> Iterator[Cause]:
    for n, expression in enumerate(term.get("matchExpressions") or []):
        yield from _expression(expression, f"{at}.matchExpressions[{n}]")
    for n, field in enumerate(term.get("matchFields") or []):
        yield from _field(field, f"{at}.matchFields[{n}]")


def _expression(expression: Obj, at: str) -> Iterator[Cause]:
    operator, values = expression.get("operator", ""), expression.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden_field(f"{at}.values", why)
    elif operator in _NUMERIC:
        if len(values) != 1:
            yield required(f"{at}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield invalid_value(f"{at}.operator", operator, _NO_OPERATOR)
    yield from label_name(expression.get("key", ""), f"{at}.key")
    for n, value in enumerate(values):
        yield from _label_value(value, f"{at}.values[{n}]")


def _field(field: Obj, at: str) -> Iterator[Cause]:
    """Check a term's field: only a node's name is allowed."""
    if (operator := field.get("operator", "")) not in ("In", "NotIn"):
        yield invalid_value(f"{at}.operator", operator, _NO_OPERATOR)
    elif len(field.get("values") or []) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{at}.values", why)
    if (key := field.get("key", "")) != "metadata.name":
        yield invalid_value(f"{at}.key", key, "not a valid field selector key")


def _toleration(toleration: Obj, at: str) -> Iterator[Cause]:
    operator, effect = toleration.get("operator") or "Equal", toleration.get("effect", "")
    key, value = toleration.get("key", ""), toleration.get("value", "")
    if key:
        yield from label_name(key, f"{at}.key")
    elif operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid_value(f"{at}.operator", toleration.get("operator", ""), why)
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid_value(f"{at}.effect", effect, why)
    if operator == "Equal":
        yield from _label_value(value, f"{at}.operator")
    elif operator == "Exists":
        if value:
            yield invalid_value(f"{at}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        known = (*_TOLERATED, *_NUMERIC) if operator in _NUMERIC else _TOLERATED
        yield not_supported(f"{at}.operator", operator, known)
    if effect and effect not in _EFFECTS:
        yield not_supported(f"{at}.effect", effect, _EFFECTS)


def label_name(key: str, at: str) -> Iterator[Cause]:
    if not KEY_NAME.fullmatch(key.rpartition("/")[2]):
        yield invalid_value(at, key, NOT_A_KEY_NAME)


def _label_value(value: str, at: str) -> Iterator[Cause]:
    if not LABEL_VALUE.fullmatch(value):
        yield invalid_value(at, value, NOT_A_LABEL_VALUE)
    elif len(value) > 63:
        yield invalid_value(at, value, "must be no more than 63 bytes")
