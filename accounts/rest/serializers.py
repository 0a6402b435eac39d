"""Strict request bodies: an unknown field is a mistake to report, not to ignore."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.parsers import JSONParser

from accounts.errors import MOST_FAULTY_FIELDS


class StrictSerializer(serializers.Serializer[Any]):
    """A body in which unknown fields and values of a wrong JSON type are refused, at every level."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            wrong = {name: [_("This must be text.")] for name in data if self._is_no_text(name, data[name])}
            wrong |= {
                name: [_("This must be a number.")] for name in data if self._is_no_number(name, data[name])
            }
            if wrong:
                raise serializers.ValidationError(wrong)
            known = {name for name, field in self.fields.items() if not field.read_only}
            unknown = sorted(str(name) for name in data if name not in known)[:MOST_FAULTY_FIELDS]
            if unknown:
                raise serializers.ValidationError({name: [_("There is no such field.")] for name in unknown})
        return super().to_internal_value(data)

    def _is_no_text(self, name: str, value: Any) -> bool:
        return isinstance(self.fields.get(name), serializers.CharField) and isinstance(value, int | float)

    def _is_no_number(self, name: str, value: Any) -> bool:
        numbers = serializers.IntegerField | serializers.FloatField
        return isinstance(self.fields.get(name), numbers) and isinstance(value, bool)


class NestingJSONParser(JSONParser):
    """A JSON parser that refuses a body that nests too deeply, instead of crashing."""

    def parse(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().parse(*args, **kwargs)
        except RecursionError:
            raise serializers.ValidationError(_("The body nests too deeply.")) from None


class ErrorSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="For programs: never changes.")
    message = serializers.CharField(help_text="One sentence: what happened.")
    hint = serializers.CharField(allow_blank=True, help_text="What to do.")
    fields = serializers.DictField(  # type: ignore[assignment]
        child=serializers.ListField(child=serializers.CharField()), help_text="What is wrong, by field."
    )


class ErrorBody(serializers.Serializer[Any]):
    error = ErrorSerializer()
