"""Label and field selectors: parsed once, matched many times."""

import re
from collections.abc import Callable, Iterator, Mapping

from devcluster.errors import ApiError, bad_request
from devcluster.resources import Kind, Obj
from devcluster.values.names import KEY_NAME, LABEL_VALUE, NOT_A_KEY_NAME, NOT_A_LABEL_VALUE

Match = Callable[[Obj], bool]

Labels = Mapping[str, str]
Test = Callable[[Labels], bool]
_TOKEN = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")
_SPECIAL = frozenset({"", "==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_OPERATORS = "in, notin, =, ==, !=, gt, lt"


class _Parser:
    """Parser of selectors that refuses what Kubernetes refuses, in the same words."""

    def __init__(self, text: str):
        self._tokens = _TOKEN.findall(text)
        self._at = 0

    def requirements(self) -> Iterator[Test]:
        while word := self._peek():
            if word in _SPECIAL - {"!"}:
                raise bad_request(f"found '{word}', expected: !, identifier, or 'end of string'")
            yield self._requirement()
            after = self._take()
            if after not in ("", ","):
                raise bad_request(f"found '{after}', expected: ',' or 'end of string'")
            if after and self._peek() in _SPECIAL - {"!"}:
                raise bad_request(f"found '{self._peek()}', expected: identifier after ','")

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _requirement(self) -> Test:
        absent = self._peek() == "!" and bool(self._take())
        key = self._take()
        if key in _SPECIAL:
            raise _unparsable(f"found '{key}', expected: identifier")
        if not KEY_NAME.fullmatch(key.rpartition("/")[2]):
            raise _unparsable(f'<nil>: Invalid value: "{key}": {NOT_A_KEY_NAME}')
        if absent:
            return lambda labels: key not in labels
        if self._peek() in ("", ","):
            return lambda labels: key in labels
        operator = self._take()
        if operator in ("in", "notin"):
            return _within(key, self._values(), operator == "in")
        if operator not in ("=", "==", "!=", ">", "<"):
            raise _unparsable(f"found '{operator}', expected: {_OPERATORS}")
        return _compared(key, operator, self._value(key))

    def _value(self, key: str) -> str:
        if self._peek() in ("", ","):
            return ""
        value = self._take()
        if value in _SPECIAL:
            raise _unparsable(f"found '{value}', expected: identifier")
        why = "must be no more than 63 bytes" if len(value) > 63 else ""
        if why or not LABEL_VALUE.fullmatch(value):
            raise _unparsable(f'values[0][{key}]: Invalid value: "{value}": {why or NOT_A_LABEL_VALUE}')
        return value

    def _values(self) -> set[str]:
        opened = self._take()
        if opened != "(":
            raise _unparsable(f"found '{opened}' expected: '('")
        found = set()
        while (word := self._take()) != ")":
            if word in _SPECIAL - {","}:
                raise _unparsable(f"found '{word}', expected: ',', ')' or identifier")
            if word != ",":
                found.add(word)
                if self._peek() not in (",", ")"):
                    raise _unparsable(f"found '{self._peek()}', expected: ',' or ')'")
        return found


def _unparsable(why: str) -> ApiError:
    return bad_request(f"unable to parse requirement: {why}")


def _within(key: str, values: set[str], wanted: bool) -> Test:
    return lambda labels: (labels.get(key) in values) is wanted


def _compared(key: str, operator: str, value: str) -> Test:
    if operator in ("<", ">"):
        if not _INTEGER.fullmatch(value):
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise _unparsable(f'values[0]: Invalid value: "{value}": {why}')
        return _numbers(key, operator == ">", int(value))
    return lambda labels: (labels.get(key) == value) is (operator != "!=")


def _numbers(key: str, greater: bool, than: int) -> Test:
    def test(labels: Labels) -> bool:
        text = labels.get(key, "")
        return bool(_INTEGER.fullmatch(text)) and (int(text) > than if greater else int(text) < than)

    return test


_INTEGER = re.compile(r"[+-]?\d+")


def label_selector(text: str) -> Match:
    """Return `a=b,c in (d,e),!f` as a predicate."""
    tests = list(_Parser(text).requirements())
    return lambda o: all(test(o["metadata"].get("labels") or {}) for test in tests)


def match_labels(selector: Obj | None, labels: Mapping[str, str]) -> bool:
    """Match labels against a LabelSelector object (matchLabels and matchExpressions); None selects nothing."""
    if selector is None:
        return False
    if any(labels.get(k) != v for k, v in (selector.get("matchLabels") or {}).items()):
        return False
    for expression in selector.get("matchExpressions") or []:
        key, values = expression["key"], expression.get("values") or []
        held = {
            "In": labels.get(key) in values,
            "NotIn": labels.get(key) not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }
        if not held.get(expression["operator"], False):
            return False
    return True


_FIELDS: dict[str, tuple[str, ...]] = {
    "Pod": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "Event": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "Namespace": ("status.phase",),
    "Node": ("spec.unschedulable",),
    "Secret": ("type",),
    "Job": ("status.successful",),
    "Service": ("spec.clusterIP", "spec.type"),
}
_ALWAYS = ("metadata.name", "metadata.namespace")


def _field(obj: Obj, path: str) -> str:
    if path == "source":
        return str((obj.get("source") or {}).get("component") or obj.get("reportingComponent", ""))
    value: object = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def field_selector(kind: Kind, text: str) -> Match:
    """Return `metadata.name=a,status.phase!=Running` as a predicate; refuse fields that the kind does not offer."""
    tests: list[tuple[str, bool, str]] = []
    for term in filter(None, re.split(r"(?<!\\),", text)):
        match = re.fullmatch(r"([^=!]+?)\s*(!=|==|=)\s*(.*)", term.strip())
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        path, operator = match[1], match[2]
        value = re.sub(r"\\(.)", r"\1", match[3])
        if path not in _ALWAYS + _FIELDS.get(kind.kind, ()):
            if kind.kind == "Job":
                raise bad_request(f'field label "{path}" not supported for Job')
            if kind.kind in _FIELDS:
                raise bad_request(f"field label not supported: {path}")
            raise bad_request(
                f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'
            )
        tests.append((path, operator != "!=", value))
    return lambda o: all((_field(o, path) == value) is wanted for path, wanted, value in tests)
