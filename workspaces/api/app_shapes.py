"""Bodies of the endpoints of apps: requests, and for the documentation responses."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.rest.serializers import StrictSerializer
from workspaces.state import declared
from workspaces.state.declared import SharedWith


class AppBody(StrictSerializer):
    name = serializers.CharField(max_length=declared.LONGEST_NAME)
    port = serializers.IntegerField(
        min_value=declared.FIRST_PORT,
        max_value=declared.LAST_PORT,
        help_text="In the workspace; on 127.0.0.1 is enough.",
    )
    shared_with = serializers.ChoiceField(
        required=False,
        choices=SharedWith.choices,
        default=SharedWith.ME,
        help_text="Who may open it: me, its owner alone; or tenant, everyone in the tenant.",
    )


class AppChangeBody(StrictSerializer):
    name = serializers.CharField(required=False, max_length=declared.LONGEST_NAME)
    shared_with = serializers.ChoiceField(required=False, choices=SharedWith.choices)


class AppShape(serializers.Serializer[Any]):
    name = serializers.CharField()
    port = serializers.IntegerField()
    url = serializers.CharField(
        allow_null=True, help_text="For a browser that is signed in to Berth; null while it cannot be opened."
    )
    shared_with = serializers.ChoiceField(choices=SharedWith.choices)
