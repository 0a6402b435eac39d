"""Label and field selectors: parsed once, matched many times."""

import re
from collections.abc import Callable, Mapping

from devcluster.errors import bad_request
from devcluster.resources import Kind, Obj

Match = Callable[[Obj], bool]

_TOKEN = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")
_EXPECTED = "in, notin, =, ==, !=, gt, lt"


def _labels(obj: Obj) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


class _Parser:
    def __init__(self, text: str):
        self.tokens = [t for t in _TOKEN.findall(text) if t]
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def values(self) -> set[str]:
        if self.take() != "(":
            raise bad_request("unable to parse requirement: found '', expected: '('")
        found = set()
        while (word := self.take()) != ")":
            if not word:
                raise bad_request("unable to parse requirement: found '', expected: ',' or ')'")
            if word != ",":
                found.add(word)
        return found

    def requirement(self) -> Match:
        if self.peek() == "!":
            self.take()
            absent = self.take()
            return lambda o: absent not in _labels(o)
        key = self.take()
        operator = self.peek()
        if operator in ("", ","):
            return lambda o: key in _labels(o)
        self.take()
        if operator in ("=", "=="):
            value = "" if self.peek() in (",", "") else self.take()
            return lambda o: _labels(o).get(key) == value
        if operator == "!=":
            value = "" if self.peek() in (",", "") else self.take()
            return lambda o: _labels(o).get(key) != value
        if operator == "in":
            wanted = self.values()
            return lambda o: _labels(o).get(key) in wanted
        if operator == "notin":
            unwanted = self.values()
            return lambda o: _labels(o).get(key) not in unwanted
        raise bad_request(f"unable to parse requirement: found '{operator}', expected: {_EXPECTED}")


def label_selector(text: str) -> Match:
    """`a=b,c in (d,e),!f` as a predicate."""
    parser = _Parser(text)
    requirements: list[Match] = []
    while parser.peek():
        requirements.append(parser.requirement())
        if parser.peek() == ",":
            parser.take()
        elif parser.peek():
            raise bad_request(
                f"unable to parse requirement: found '{parser.peek()}', expected: ',' or 'end of string'"
            )
    return lambda o: all(r(o) for r in requirements)


def match_labels(selector: Obj | None, labels: Mapping[str, str]) -> bool:
    """A LabelSelector object (matchLabels and matchExpressions) against labels; none selects nothing."""
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
    """`metadata.name=a,status.phase!=Running` as a predicate; unknown fields are refused as the kind does."""
    tests: list[tuple[str, bool, str]] = []
    for term in filter(None, text.split(",")):
        match = re.fullmatch(r"([^=!]+?)\s*(!=|==|=)\s*(.*)", term.strip())
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        path, operator, value = match.groups()
        if path not in _ALWAYS + _FIELDS.get(kind.kind, ()):
            if kind.kind in _FIELDS:
                raise bad_request(f"field label not supported: {path}")
            raise bad_request(
                f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'
            )
        tests.append((path, operator != "!=", value))
    return lambda o: all((_field(o, path) == value) is wanted for path, wanted, value in tests)
