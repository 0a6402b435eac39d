"""Request and response bodies of the accounts endpoints."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from rest_framework import serializers

from accounts.credentials.tokens import DEFAULT_DAYS, LONGEST_DAYS
from accounts.models import (
    APIToken,
    AuditEntry,
    Membership,
    Role,
    Scope,
    SSHKey,
    Tenant,
    Theme,
    valid_time_zone,
)
from accounts.rest.serializers import StrictSerializer


class MyTenantShape(serializers.Serializer[Any]):
    slug = serializers.CharField()
    name = serializers.CharField()
    role = serializers.ChoiceField(choices=Role.choices)


class MeShape(serializers.Serializer[Any]):
    username = serializers.CharField()
    email = serializers.CharField()
    is_admin = serializers.BooleanField()
    language = serializers.CharField(help_text="In which Berth speaks to you, as in en or zh-hans.")
    time_zone = serializers.CharField(
        allow_null=True, help_text="As in Europe/Berlin; null: the browser's. The API speaks UTC."
    )
    theme = serializers.CharField(allow_blank=True, help_text="light or dark; empty: the system's.")
    service_account = serializers.BooleanField(help_text="True: not a person, see `service-accounts/`.")
    tenants = MyTenantShape(many=True)


class MyPreferences(StrictSerializer):
    """ "" means the browser's language and time zone, and the system's theme."""

    language = serializers.ChoiceField(choices=["", *dict(settings.LANGUAGES)], required=False)
    time_zone = serializers.CharField(max_length=64, allow_blank=True, required=False)
    theme = serializers.ChoiceField(choices=["", *Theme.values], required=False)

    def validate_time_zone(self, name: str) -> str:
        if name:
            try:
                valid_time_zone(name)
            except ValidationError as error:
                raise serializers.ValidationError(error.messages) from None
        return name


class SSHKeyShape(serializers.ModelSerializer[SSHKey]):
    class Meta:
        model = SSHKey
        fields = ("id", "name", "public_key", "fingerprint", "created_at")


class NewSSHKey(StrictSerializer):
    name = serializers.CharField(max_length=80)
    public_key = serializers.CharField(trim_whitespace=False, help_text="The one line of your id_….pub.")


class TokenShape(serializers.ModelSerializer[APIToken]):
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=Scope.choices))
    tenant: serializers.SlugRelatedField[Tenant] = serializers.SlugRelatedField(
        slug_field="slug", read_only=True, allow_null=True
    )

    class Meta:
        model = APIToken
        fields = ("id", "name", "prefix", "scopes", "tenant", "created_at", "expires_at", "last_used_at")


class TokenWithSecretShape(TokenShape):
    secret = serializers.CharField(help_text="Shown now and never again.")

    class Meta(TokenShape.Meta):
        fields = (*TokenShape.Meta.fields, "secret")  # type: ignore[assignment]


class NewDeviceCode(StrictSerializer):
    """The scopes are those of a token of the person; without: all but `admin`."""

    name = serializers.CharField(
        max_length=80, help_text="How the terminal is called, as in berth on laptop."
    )
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=Scope.choices), required=False, max_length=len(Scope)
    )


class DeviceCodeShape(serializers.Serializer[Any]):
    device_code = serializers.CharField(help_text="The terminal's secret.")
    user_code = serializers.CharField(help_text="What the person compares, or types in.")
    verification_uri = serializers.URLField()
    verification_uri_complete = serializers.URLField(help_text="The same, with the code filled in.")
    expires_in = serializers.IntegerField(help_text="Seconds.")
    interval = serializers.IntegerField(help_text="Seconds between two requests for the token.")


class DeviceTokenBody(StrictSerializer):
    device_code = serializers.CharField(max_length=100)


class DeviceTokenShape(serializers.Serializer[Any]):
    token = serializers.CharField(help_text="Given once.")
    username = serializers.CharField()
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=Scope.choices))
    expires_at = serializers.DateTimeField()


class NewToken(StrictSerializer):
    name = serializers.CharField(max_length=80)
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=Scope.choices), allow_empty=False)
    tenant = serializers.CharField(
        required=False, allow_null=True, help_text="Its slug; empty: all of yours."
    )
    days = serializers.IntegerField(required=False, default=DEFAULT_DAYS, min_value=1, max_value=LONGEST_DAYS)


class TenantShape(serializers.ModelSerializer[Tenant]):
    class Meta:
        model = Tenant
        fields = ("id", "slug", "name", "created_at")


class NewTenant(StrictSerializer):
    slug = serializers.CharField(max_length=40)
    name = serializers.CharField(max_length=120)


class MemberShape(serializers.ModelSerializer[Membership]):
    username = serializers.CharField(source="user.username")
    is_active = serializers.BooleanField(source="user.is_active")
    is_service_account = serializers.SerializerMethodField()

    class Meta:
        model = Membership
        fields = ("username", "role", "is_active", "is_service_account")

    def get_is_service_account(self, membership: Membership) -> bool:
        return membership.user.service_of_id is not None


class NewMember(StrictSerializer):
    username = serializers.CharField(max_length=254, help_text="Or the person's e-mail address.")
    role = serializers.ChoiceField(choices=Role.choices, default=Role.MEMBER)


class NewRole(StrictSerializer):
    role = serializers.ChoiceField(choices=Role.choices)


class TicketShape(serializers.Serializer[Any]):
    ticket = serializers.CharField(help_text="Opens one websocket, as ?token=….")
    expires_at = serializers.DateTimeField()


class NoBody(StrictSerializer):
    """An empty body, for a POST that takes nothing."""


class AuditShape(serializers.ModelSerializer[AuditEntry]):
    tenant: serializers.SlugRelatedField[Tenant] = serializers.SlugRelatedField(
        slug_field="slug", read_only=True, allow_null=True
    )
    actor = serializers.CharField(source="actor_name")
    data = serializers.DictField()  # type: ignore[assignment]

    class Meta:
        model = AuditEntry
        fields = (
            "id", "at", "actor", "action", "outcome", "tenant", "target_kind", "target_id", "address", "data",
        )  # fmt: skip
