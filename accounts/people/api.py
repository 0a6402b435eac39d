"""People over REST, for admins."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext_noop
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import members
from accounts.models import Membership, Role, Scope, User
from accounts.people import changing
from accounts.rest import shapes
from accounts.rest.actors import actor_of
from accounts.rest.schema import answers
from accounts.rest.serializers import StrictSerializer
from accounts.rest.views import ListView, checked
from accounts.sign_on import second_factor


class PlaceShape(serializers.ModelSerializer[Membership]):
    tenant = serializers.CharField(source="tenant.slug")
    role = serializers.ChoiceField(choices=Role.choices)

    class Meta:
        model = Membership
        fields = ("tenant", "role", "by_group")


class PersonShape(serializers.ModelSerializer[User]):
    is_admin = serializers.BooleanField(source="is_staff")
    created_at = serializers.DateTimeField(source="date_joined")
    memberships = PlaceShape(many=True)

    class Meta:
        model = User
        fields = (
            "id", "username", "first_name", "last_name", "email", "is_admin", "is_active", "created_at", "last_login",
            "memberships",
        )  # fmt: skip


class FirstPasswordShape(serializers.Serializer[Any]):
    first_password = serializers.CharField(
        allow_null=True,
        help_text="Shown now and never again, valid for one sign-in; null: they use single sign-on alone.",
    )


class NewPersonShape(PersonShape, FirstPasswordShape):
    class Meta(PersonShape.Meta):
        fields = (*PersonShape.Meta.fields, "first_password")  # type: ignore[assignment]


class PersonDetails(StrictSerializer):
    first_name = serializers.CharField(max_length=150, allow_blank=True, required=False)
    last_name = serializers.CharField(max_length=150, allow_blank=True, required=False)
    email = serializers.EmailField(max_length=254, allow_blank=True, required=False)


class NewPerson(PersonDetails):
    username = serializers.CharField(max_length=150)
    sign_in = serializers.ChoiceField(
        choices=("password", "sign-on"),
        default="password",
        help_text="With a first password that the response contains, or by single sign-on alone.",
    )


class PersonChange(PersonDetails):
    is_active = serializers.BooleanField(
        required=False, help_text="False: sessions, tokens and keys stop working at once; nothing is deleted."
    )
    is_admin = serializers.BooleanField(required=False)


class PersonFilter(filters.FilterSet):  # type: ignore[misc]
    is_active = filters.BooleanFilter()
    is_admin = filters.BooleanFilter("is_staff")
    tenant = filters.CharFilter("memberships__tenant__slug")


class PeopleView(ListView):
    write_scope = Scope.ADMIN
    serializer_class = PersonShape
    queryset = User.objects.none()
    filterset_class = PersonFilter
    search_fields = ("username", "first_name", "last_name", "email")
    keyset = ("username", "id")

    def get_queryset(self) -> QuerySet[User]:
        return changing.everybody(actor_of(self.request))

    @extend_schema(summary=gettext_noop("People (admins)"), responses=answers({200: PersonShape(many=True)}))
    def get(self, request: Request) -> Response:
        return self.page()

    @extend_schema(
        summary=gettext_noop("Create a person; only this response contains the first password (admins)"),
        request=NewPerson,
        responses=answers({201: NewPersonShape}, 409, 422),
    )
    def post(self, request: Request) -> Response:
        values = checked(NewPerson, request)
        with_password = values.pop("sign_in") == "password"
        person = User(**values)
        person.first_password = changing.create(  # type: ignore[attr-defined]
            actor_of(request), person, with_password=with_password
        )
        answer = NewPersonShape(person).data
        return Response(answer, status=201, headers={"Cache-Control": "no-store"})


class PersonView(APIView):
    write_scope = Scope.ADMIN

    @extend_schema(summary=gettext_noop("A person (admins)"), responses=answers({200: PersonShape}, 404))
    def get(self, request: Request, username: str) -> Response:
        return Response(PersonShape(changing.get(actor_of(request), username)).data)

    @extend_schema(
        summary=gettext_noop("Change, activate or deactivate a person, give or remove admin rights (admins)"),
        request=PersonChange,
        responses=answers({200: PersonShape}, 404, 409, 422),
    )
    def patch(self, request: Request, username: str) -> Response:
        person = changing.change(actor_of(request), username, checked(PersonChange, request))
        return Response(PersonShape(person).data)

    @extend_schema(
        summary=gettext_noop("Delete a person who never launched anything (admins)"),
        request=None,
        responses=answers({204: None}, 404, 409),
    )
    def delete(self, request: Request, username: str) -> Response:
        actor = actor_of(request)
        members.delete_person(actor, changing.get(actor, username))
        return Response(status=204)


class PasswordView(APIView):
    write_scope = Scope.ADMIN

    @extend_schema(
        summary=gettext_noop("Set a new first password; only this response contains it (admins)"),
        request=None,
        responses=answers({200: FirstPasswordShape}, 404, 409),
    )
    def post(self, request: Request, username: str) -> Response:
        checked(shapes.NoBody, request)
        password = changing.set_first_password(actor_of(request), username)
        return Response({"first_password": password}, headers={"Cache-Control": "no-store"})


class ResetSecondFactorView(APIView):
    write_scope = Scope.ADMIN

    @extend_schema(
        summary=gettext_noop("Remove the second factor of a person who lost it (admins)"),
        request=None,
        responses=answers({204: None}, 404, 409),
    )
    def post(self, request: Request, username: str) -> Response:
        checked(shapes.NoBody, request)
        actor = actor_of(request)
        second_factor.reset(actor, changing.get(actor, username))
        return Response(status=204)
