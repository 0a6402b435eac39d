"""Tasks in the queue as data: a registered function by name, and JSON for it.

django-q2 signs pickles with BERTH_SECRET_KEY, which every part has. So whoever has the key and may write the queue
could let the worker run any code. Here the queue holds JSON, and the worker runs only what a room's `tasks.py` defines.
"""

from __future__ import annotations

import json
from importlib import import_module
from inspect import isfunction
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django_q.signing import SignedPackage

KEYS = ("id", "name", "func", "args", "kwargs", "group")
MOST_BYTES = 10_000
Scalar = (str, int, float, bool, type(None))


class NoTask(ValueError):
    """A payload that the worker does not run."""


def pack(signed: str) -> str:
    """Return as JSON what django-q2 made of a task in this process; raises NoTask if the worker would not run it."""
    task = SignedPackage.loads(signed)
    told = {key: task[key] for key in KEYS if key in task}
    payload = json.dumps({**told, "started": task["started"].isoformat()}, default=_refuse)
    checked(payload)
    return payload


def unpack(payload: str) -> str:
    """Return a payload of the queue as django-q2 takes it from its broker, made in this process. Raises NoTask."""
    return str(SignedPackage.dumps(checked(payload)))


def checked(payload: str) -> dict[str, Any]:
    """Return the task of a payload. Raises NoTask."""
    try:
        told = json.loads(payload) if len(payload) <= MOST_BYTES else None
    except ValueError:
        told = None
    if not isinstance(told, dict) or not {"id", "name", "func", "args", "kwargs", "started"} <= told.keys():
        raise NoTask("no task as JSON")
    if told.keys() - {*KEYS, "started"}:
        raise NoTask(f"options that no task of Berth has: {sorted(told.keys() - {*KEYS, 'started'})}")
    if not all(isinstance(told.get(key, ""), str) for key in ("id", "name", "func", "group", "started")):
        raise NoTask("names that are no text")
    args, kwargs = told["args"], told["kwargs"]
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise NoTask("arguments that are none")
    if not all(isinstance(value, Scalar) for value in (*args, *kwargs.values())):
        raise NoTask("arguments that are more than text and numbers")
    if not is_registered(told["func"]):
        raise NoTask(f"no task of Berth: {told['func'][:120]}")
    return {**told, "args": tuple(args), "started": parse_datetime(told["started"]) or timezone.now()}


def is_registered(name: str) -> bool:
    """Return True for a function that a room's `tasks.py` defines itself, as in "quotas.tasks.admission_pass"."""
    module, _dot, function = name.rpartition(".")
    if module not in settings.TASK_MODULES or not function.isidentifier() or function.startswith("_"):
        return False
    found = getattr(import_module(module), function, None)
    return isfunction(found) and found.__module__ == module


def _refuse(value: object) -> None:
    raise NoTask(f"an argument of a kind that is no JSON: {type(value).__name__}")
