"""JSON of a record, for the API and for its page, in the reader's language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from accounts.access import Actor
from monitoring.models import PostMortem, PostMortemNote
from quotas.models import Claim
from storage import problems
from workloads import images
from workloads.figures import moment

from . import access, words
from .groups import like
from .verdicts import exits

Json = dict[str, Any]


def brief(record: PostMortem) -> Json:
    """Return what lists show of a record."""
    is_workspace = record.holder_kind == Claim.Holder.WORKSPACE
    return {
        "id": str(record.pk),
        "tenant": record.tenant.slug,
        "owner": record.owner.get_username(),
        "workspace": str(record.holder_id) if is_workspace else None,
        "job": None if is_workspace else str(record.holder_id),
        "name": record.name,
        "index": None if is_workspace else record.part,
        "attempt": None if is_workspace else record.attempt,
        "cluster": record.cluster.slug if record.cluster else None,
        "node": record.node or None,
        "pool": record.pool or None,
        "image": images.shown(record.image) or None,
        "gpus": record.gpus,
        "happened": record.happened,
        "verdict": explained(record),
        "exit_code": next(exits(record.facts.get("ends", ())), record.data.get("exit_code")),
        "started_at": moment(record.started_at),
        "ended_at": moment(record.ended_at),
        "is_complete": record.due_at is None,
    }


def explained(record: PostMortem) -> Json:
    """Return what explains the end best; until facts are gathered, what its event said."""
    code = record.verdict or record.code
    data = record.verdict_data if record.verdict else record.data
    return {
        "code": code,
        "message": words.sentence(record, code, data),
        "hint": words.hint(record, code, data),
        "from_log": bool(data.get("from_log")),
    }


def whole(record: PostMortem, actor: Actor) -> Json:
    """Return all of a record. Its log is there only for those who may read the log of the run."""
    facts = record.facts
    return brief(record) | {
        "size": facts.get("size"),
        "nodes": facts.get("nodes", []),
        "gpu_facts": facts.get("gpus", []),
        "gpu_use_percent": facts.get("gpu_use_percent"),
        "gpu_memory_peak_mib": facts.get("gpu_memory_peak_mib"),
        "memory_peak_mib": facts.get("memory_peak_mib"),
        "ends": facts.get("ends", []),
        "pods": facts.get("pods", []),
        "oom_kills": facts.get("oom_kills"),
        "xids": facts.get("xids", []),
        "events": facts.get("events", []),
        "volumes": [volume_json(one) for one in facts.get("volumes", ())],
        "node_then": facts.get("node"),
        "agent_then": facts.get("agent"),
        "troubles": [_told(record, one) for one in facts.get("troubles", ())],
        "story": [_told(record, one) for one in facts.get("story", ())],
        "namespace_deleted_at": facts.get("namespace_deleted_at"),
        "log": record.lines if access.reads_log(actor, record) else None,
        "missing": [
            {"code": code, "message": str(words.MISSING[code])}
            for code in facts.get("missing", ())
            if code in words.MISSING
        ],
        "notes": [note_json(note) for note in record.notes.all()],
        "alike": [{**brief(one), "shares": what} for one, what in like(actor, record)],
    }


def _told(record: PostMortem, one: Mapping[str, Any]) -> Json:
    code, data = one["code"], one["data"]
    return {**one, "message": words.sentence(record, code, data), "hint": words.hint(record, code, data)}


def volume_json(one: Mapping[str, Any]) -> Json:
    problem = one["problem"]
    return {**one, "problem": problems.shown(problem["code"], problem["data"]) if problem else None}


def note_json(note: PostMortemNote) -> Json:
    return {"id": str(note.pk), "author": note.author_name, "at": moment(note.at), "text": note.text}


def briefs(records: Iterable[PostMortem]) -> list[Json]:
    return [brief(record) for record in records]
