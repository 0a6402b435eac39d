"""Metrics and labels that a PromQL expression uses, and the labels of its answer.

The tests find a name that nothing exports, before an alert stays silent because of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import promql_parser as promql

Labels = frozenset[str]
Known = Mapping[str, Labels]  # a metric's name to its labels
NONE: Labels = frozenset()


class NotThere(Exception):
    """Metric or label that an expression uses and that does not exist."""


def labels_of(text: str, known: Known) -> Labels:
    """Return the labels of the answer; raise NotThere if the expression uses a name that does not exist.

    Grafana's variables may stand in it, as a label's value and as a range.
    """
    plain = re.sub(r"\$__(rate_interval|interval|range)\b", "5m", text)
    return _labels(promql.parse(plain), known)


def _labels(expression: promql.Expr, known: Known) -> Labels:
    match expression:
        case promql.VectorSelector():
            return _selected(expression, known)
        case promql.MatrixSelector():
            return _selected(expression.vector_selector, known)
        case promql.Call():
            return _called(expression, known)
        case promql.AggregateExpr():
            return _aggregated(expression, known)
        case promql.BinaryExpr():
            return _combined(expression, known)
        case promql.ParenExpr() | promql.UnaryExpr() | promql.SubqueryExpr():
            return _labels(expression.expr, known)
        case promql.NumberLiteral() | promql.StringLiteral():
            return NONE
    raise AssertionError(f"not read here: {expression}")


def _selected(selector: promql.VectorSelector, known: Known) -> Labels:
    if selector.name is None or selector.name not in known:
        raise NotThere(f"no such metric: {selector}")
    has = known[selector.name]
    # dcgm-exporter sets MIG labels or leaves them out: `GPU_I_ID=""` selects series without.
    asked = {matcher.name for matcher in selector.matchers.matchers}
    return _require(asked, has, selector)


def _called(call: promql.Call, known: Known) -> Labels:
    arguments = [_labels(argument, known) for argument in call.args]
    text = [one.val if isinstance(one, promql.StringLiteral) else "" for one in call.args]
    match call.func.name:
        case "label_replace":
            _require({text[3]}, arguments[0], call)
            return arguments[0] | {text[1]}
        case "label_join":
            _require(set(text[3:]), arguments[0], call)
            return arguments[0] | {text[1]}
        case "histogram_quantile":
            return _require({"le"}, arguments[1], call) - {"le"}
        case "absent" | "time" | "vector":
            return NONE
    return frozenset().union(*arguments)


def _aggregated(aggregate: promql.AggregateExpr, known: Known) -> Labels:
    inner = _labels(aggregate.expr, known)
    keeps = NONE
    if aggregate.modifier:
        named = frozenset(aggregate.modifier.labels)
        _require(named, inner, aggregate)
        is_by = aggregate.modifier.type == promql.AggModifierType.By
        keeps = named if is_by else inner - named
    operation = str(aggregate.op)
    if operation == "count_values":
        assert isinstance(aggregate.param, promql.StringLiteral)
        return keeps | {aggregate.param.val}
    return inner if operation in ("topk", "bottomk") else keeps


def _combined(binary: promql.BinaryExpr, known: Known) -> Labels:
    left, right = _labels(binary.lhs, known), _labels(binary.rhs, known)
    operation, modifier = str(binary.op), binary.modifier
    matching = modifier.matching if modifier else None
    if matching and matching.type == promql.LabelModifierType.Include:
        _require(set(matching.labels), left, binary.lhs)
        _require(set(matching.labels), right, binary.rhs)
    if operation == "or":
        return left & right
    if operation in ("and", "unless") or _is_scalar(binary.rhs):
        return left
    if _is_scalar(binary.lhs):
        return right
    group = frozenset(modifier.group_labels or ()) if modifier else NONE
    if modifier and modifier.card == promql.VectorMatchCardinality.ManyToOne:
        return left | _require(group, right, binary.rhs)
    if modifier and modifier.card == promql.VectorMatchCardinality.OneToMany:
        return right | _require(group, left, binary.lhs)
    return frozenset(matching.labels) if matching else left


def _is_scalar(expression: promql.Expr) -> bool:
    match expression:
        case promql.ParenExpr() | promql.UnaryExpr():
            return _is_scalar(expression.expr)
        case promql.Call():
            return expression.func.name == "time"
        case promql.BinaryExpr():
            return _is_scalar(expression.lhs) and _is_scalar(expression.rhs)
    return isinstance(expression, promql.NumberLiteral)


def _require(asked: set[str] | Labels, has: Labels, where: object) -> Labels:
    if missing := sorted(asked - has):
        raise NotThere(f"no such label: {', '.join(missing)} in {where}; there are {', '.join(sorted(has))}")
    return has
