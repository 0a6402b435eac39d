"""Use cases: export of the configuration, and bringing it to what a file says, all of it or nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import yaml
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts import signals
from accounts.access import Actor, not_there
from accounts.errors import Conflict, Invalid, Refusal
from accounts.locks import one_at_a_time
from clusters.models import Cluster
from portal.configuration.difference import Change, Key, changes, plan
from portal.configuration.kind import Faulty, Kind, Names, refusal_texts
from portal.configuration.kinds import BY_NAME, ENVIRONMENT, KEPT, KINDS, PASSWORD_VARIABLE
from portal.configuration.reading import Document, Path, refused
from quotas import admission

DELETE_ABSENT = "delete_absent"
SEALED = ("kubeconfig", "registries")  # of a cluster: read, they do not show that they changed


There = dict[Key, tuple[Any, dict[str, Any]]]  # objects with their values, by key
Named = tuple[type[Any], str]  # a model, and the name by which others refer to one of it


class _Undone(Exception):
    """Leaves a transaction whose changes are only looked at."""


@dataclass
class Difference:
    """Objects that were created, changed and deleted, or would be; each with its kind and key."""

    created: list[dict[str, Any]] = field(default_factory=list)
    changed: list[dict[str, Any]] = field(default_factory=list)
    deleted: list[dict[str, Any]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.created or self.changed or self.deleted)


def key_text(key: Key) -> str:
    """Return the key as one text. A part that it lacks before another is “*”, as in “*/a100”: of all tenants."""
    parts = list(key)
    while len(parts) > 1 and parts[-1] is None:
        parts.pop()
    return "/".join(part or "*" for part in parts)


# --- reading


def export(actor: Actor) -> str:
    """Return all of it as YAML, in an order that changes only with what is in it. It holds no secret."""
    actor.require_admin()
    whole = {
        kind.name: [values for _key, (_obj, values) in sorted(there(kind).items(), key=_in_order)]
        for kind in KINDS
    }
    return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, width=120)


def there(kind: Kind) -> There:
    """Return the kind's objects with their values, by key."""
    read = [(obj, kind.read(obj)) for obj in kind.rows()]
    return {kind.key_of(values): (obj, values) for obj, values in read}


def _in_order(entry: tuple[Key, Any]) -> tuple[str, ...]:
    return tuple(part or "" for part in entry[0])


# --- one object


@contextmanager
def _changing(actor: Actor) -> Iterator[None]:
    """Begin to change one object. What is wrong with its fields becomes a refusal."""
    actor.require_admin()
    try:
        with writing():
            yield
    except Faulty as faulty:
        fields = {name or "non_field_errors": texts for name, texts in faulty.fields.items()}
        text, hint = _("Some of what you sent is not valid."), _("See “fields” for what to change.")
        raise Invalid("invalid", text, hint, fields=fields) from None
    except IntegrityError:
        text = _("Somebody else changed this a moment ago.")
        raise Conflict("changed_meanwhile", text, _("Try again.")) from None


def create(actor: Actor, kind: Kind, values: Mapping[str, Any]) -> Any:
    """Create an object. Raise Conflict if there is one of this key."""
    with _changing(actor):
        key = kind.key_of(values)
        if kind.find(key) is not None:
            text = _("“%(key)s” exists already.") % {"key": key_text(key)}
            raise Conflict("exists", text, _("Change it, or choose another name."))
        return kind.save(actor, None, values, Names())


def change(actor: Actor, kind: Kind, key: Key, values: Mapping[str, Any]) -> Any:
    with _changing(actor):
        return kind.save(actor, get(actor, kind, key), values, Names())


def delete(actor: Actor, kind: Kind, key: Key) -> None:
    with _changing(actor):
        kind.delete(actor, get(actor, kind, key))


def get(actor: Actor, kind: Kind, key: Key) -> Any:
    actor.require_admin()
    obj = kind.find(key)
    if obj is None:
        raise not_there()
    return obj


# --- the whole file


def apply(actor: Actor, document: Document, *, dry_run: bool = False) -> Difference:
    """Bring the objects to what the file says. Objects and fields that it does not name stay as they are; of kinds
    in its `delete_absent` those that it does not name are deleted.

    Raise Invalid, with the faulty lines, if anything in it is refused: then nothing has changed.
    """
    actor.require_admin()
    applying = _Applying(actor, document)
    try:
        with writing():
            applying.run(undoes=dry_run)
    except _Undone:
        pass
    return applying.difference


@contextmanager
def writing() -> Iterator[None]:
    """Begin a transaction that changes the configuration: one at a time, and no admission pass uses old values."""
    with signals.access_changes_together():
        one_at_a_time("configuration")
        admission.lock(*Cluster.objects.values_list("pk", flat=True))
        yield


class _Applying:
    def __init__(self, actor: Actor, document: Document) -> None:
        self.actor, self.document = actor, document
        self.difference, self.names = Difference(), Names()
        self.faults: dict[int, list[str]] = defaultdict(list)
        self.broken: set[Named] = set()  # what the file names and could not be saved
        self.used: dict[Named, Path] = {}  # what the file refers to
        self.absent = self._kinds_without_absent()

    def run(self, *, undoes: bool) -> None:
        """Write all of it. Raise _Undone if that was only to see it, Invalid if there are faults."""
        values = self.document.values
        for name in values.keys() - BY_NAME.keys() - {DELETE_ABSENT}:
            self._fault((name,), _("There is no such kind. Use: %(names)s.") % {"names": ", ".join(BY_NAME)})
        gone: list[tuple[Kind, Key, Any]] = []
        for kind in KINDS:
            known = there(kind)
            wanted = self._wanted(kind, known)
            steps = plan(
                {key: values for key, (_obj, values) in known.items()},
                {key: values for key, (_path, values) in wanted.items()},
                deletes_absent=kind.name in self.absent,
            )
            for key in sorted((*steps.created, *steps.changed), key=lambda key: kind.rank(wanted[key][1])):
                path, values = wanted[key]
                self._save(kind, key, path, values, known.get(key))
            gone += [(kind, key, known[key][0]) for key in steps.deleted]
        for kind, key, obj in reversed(gone):
            self._delete(kind, key, obj)
        if self.faults:
            raise refused(self.faults)
        if undoes:
            raise _Undone

    def _kinds_without_absent(self) -> list[str]:
        names = self.document.values.get(DELETE_ABSENT)
        if names is None:
            return []
        can = [kind.name for kind in KINDS if kind.can_delete]
        if not isinstance(names, list) or any(name not in can for name in names):
            self._fault(
                (DELETE_ABSENT,), _("List some of these kinds: %(names)s.") % {"names": ", ".join(can)}
            )
            return []
        for number, name in enumerate(names):
            if self.document.values.get(name) is None:
                text = _("The file has no list “%(name)s”. To delete all of them, write “%(name)s: []”.")
                self._fault((DELETE_ABSENT, number), text % {"name": name})
        return names

    def _wanted(self, kind: Kind, known: There) -> dict[Key, tuple[Path, dict[str, Any]]]:
        """Return the file's objects of a kind by key, with the path of each; those of wrong types are faults."""
        entries = self.document.values.get(kind.name)
        if entries is None:
            return {}
        if not isinstance(entries, list):
            self._fault((kind.name,), _("Write a list, with “- ” before each object."))
            return {}
        found: dict[Key, tuple[Path, dict[str, Any]]] = {}
        for number, entry in enumerate(entries):
            path: Path = (kind.name, number)
            named = entry.get(kind.key[0]) if isinstance(entry, dict) else None
            with self._faults_at(path, kind.name, (kind.model, named) if isinstance(named, str) else None):
                values = entry if is_as_known(kind, entry, known) else self._checked(kind, entry)
                key = kind.key_of(values)
                if key in found:
                    raise Faulty({"": [_("“%(key)s” is here twice.") % {"key": key_text(key)[:80]}]})
                found[key] = path, values
                self.used |= dict.fromkeys(references(kind, values), path)
        return found

    def _checked(self, kind: Kind, entry: Any) -> dict[str, Any]:
        if not isinstance(entry, dict):
            raise Faulty({"": [_("Write a map of fields.")]})
        serializer = kind.shape(data=entry, partial=True)
        if not serializer.is_valid():
            raise Faulty({str(name): _texts(texts) for name, texts in serializer.errors.items()})
        given = entry.get("kubeconfig")
        if kind.name == "clusters" and given not in (None, KEPT) and not given.startswith(ENVIRONMENT):
            text = _("A kubeconfig is a secret and does not belong into this file. Use “%(way)s”.")
            raise Faulty({"kubeconfig": [text % {"way": f"{ENVIRONMENT}BERTH_KUBECONFIG_…"}]})
        passwords = [one["password"] for one in serializer.validated_data.get("registries", ())]
        if any(one != KEPT and not one.startswith(ENVIRONMENT) for one in passwords):
            text = _("A password is a secret and does not belong into this file. Use “%(way)s”.")
            raise Faulty({"registries": [text % {"way": f"{ENVIRONMENT}{PASSWORD_VARIABLE}…"}]})
        values = dict(serializer.validated_data)
        kind.key_of(values)
        return {name: values[name] for name in kind.all_fields if name in values}

    def _save(
        self, kind: Kind, key: Key, path: Path, values: Mapping[str, Any], known: tuple[Any, Any] | None
    ) -> None:
        obj, old = known or (None, {})
        stored = {name: getattr(obj, name, "") for name in SEALED}
        if any(other in self.broken for other in references(kind, values)):
            return  # its own fault is told, and what follows from it is none
        with self._faults_at(path, f"{kind.name} {key_text(key)}", (kind.model, key_text(key))):
            if obj is None:
                require_all(kind, values)
            new = kind.read(kind.save(self.actor, obj, values, self.names))
            entry = {"kind": kind.name, "key": key_text(key)}
            if obj is None:
                self.difference.created.append({**entry, "fields": new})
                return
            differing = changes(old, new)
            for name in SEALED:
                if getattr(obj, name, "") != stored[name]:
                    differing[name] = Change(old.get(name), values.get(name))
            if differing:
                fields = {name: {"old": each.old, "new": each.new} for name, each in differing.items()}
                self.difference.changed.append({**entry, "fields": fields})

    def _delete(self, kind: Kind, key: Key, obj: Any) -> None:
        with self._faults_at((DELETE_ABSENT,), f"{kind.name} {key_text(key)}"):
            if not kind.rows().filter(pk=obj.pk).exists():
                return  # it went with what it belonged to
            if path := self.used.get((kind.model, key_text(key))):
                raise Faulty({"": [_("Line %(line)d refers to it.") % {"line": self.document.line(*path)}]})
            kind.delete(self.actor, obj)
            self.difference.deleted.append({"kind": kind.name, "key": key_text(key)})

    # --- faults

    @contextmanager
    def _faults_at(self, path: Path, whom: str, what: Named | None = None) -> Iterator[None]:
        """Note what is refused as faults of the lines below this path, and undo the step."""
        fields: Mapping[str, Any] = {}
        try:
            with transaction.atomic():
                yield
        except Faulty as faulty:
            fields = faulty.fields
        except Refusal as refusal:
            fields = refusal_texts(refusal)
        except IntegrityError:
            fields = {"": [_("Somebody else changed this a moment ago. Try again.")]}
        if fields:
            self._note(path, whom, fields)
            self.broken |= {what} if what else set()

    def _note(self, path: Path, whom: str, fields: Mapping[str, Any]) -> None:
        for name, texts in fields.items():
            for text in texts:
                about = f"{whom}, {name}" if name else whom
                self._fault((*path, *name.split(".")) if name else path, f"{about}: {text}")

    def _fault(self, path: Path, text: str) -> None:
        self.faults[self.document.line(*path)].append(text)


def _texts(errors: Any) -> list[str]:
    """Return DRF's errors of one field as texts, whatever they are in."""
    if isinstance(errors, dict):
        return [text for inner in errors.values() for text in _texts(inner)]
    return [text for inner in errors for text in _texts(inner)] if isinstance(errors, list) else [str(errors)]


def references(kind: Kind, values: Mapping[str, Any]) -> Iterator[Named]:
    """Yield what these values refer to."""
    for name in values.keys() & set(kind.columns):
        if kind.column(name).is_relation and values[name] is not None:
            yield kind.related(name), values[name]


def is_as_known(kind: Kind, entry: Any, known: There) -> bool:
    """Return True if the file's object is as it is: checking types takes far longer than comparing values."""
    if not isinstance(entry, dict):
        return False
    key = tuple(entry.get(name) for name in kind.key)
    if not all(part is None or isinstance(part, str) for part in key) or key not in known:
        return False
    return entry.keys() <= set(kind.all_fields) and not changes(known[key][1], entry)


def require_all(kind: Kind, values: Mapping[str, Any]) -> None:
    """Raise Faulty for fields that a new object needs."""
    missing = [name for name in kind.all_fields if name not in kind.optional and name not in values]
    if missing:
        raise Faulty({name: [_("This field is required.")] for name in missing})
