"""REST API of the files of volumes, and of the session that serves them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils.translation import get_language, gettext_noop
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.rest.schema import answers
from accounts.rest.serializers import StrictSerializer
from accounts.rest.shapes import NoBody
from accounts.rest.views import Query, checked
from storage import problems
from storage.files import client, sessions
from storage.files.answers import away
from storage.files.door import SLOT, Errand, leave
from storage.models import FilesPhase, FilesSession

from .api import OneVolumeView

LONGEST_PATH = 4000
PATH = OpenApiParameter("path", str, description="Below the volume's root, as in `results/run-1.csv`.")


class ReadOnly(serializers.Serializer[Any]):
    """Shape with `read_only`, a name that serializers use themselves."""

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "read_only": serializers.BooleanField()}


class SessionShape(ReadOnly):
    phase = serializers.ChoiceField(choices=[*FilesPhase.values[:3], "none"])
    by = serializers.CharField(allow_null=True, help_text="Who opened it.")
    created_at = serializers.DateTimeField(allow_null=True)
    problem = serializers.JSONField(allow_null=True, help_text="As a volume's.")


class EntryShape(serializers.Serializer[Any]):
    name = serializers.CharField()
    kind = serializers.CharField(help_text="file, folder, link or other.")
    size = serializers.IntegerField(help_text="In bytes.")
    modified = serializers.IntegerField(help_text="Seconds since 1970.")


class FolderShape(ReadOnly):
    entries = EntryShape(many=True)
    next = serializers.CharField(allow_null=True, help_text="Send it as `after` for more; null: that is all.")
    free = serializers.IntegerField(help_text="Bytes that are free on the volume.")


class UploadShape(serializers.Serializer[Any]):
    received = serializers.IntegerField(help_text="Bytes that are there: the upload continues behind them.")
    size = serializers.IntegerField()
    done = serializers.BooleanField(required=False)


class FolderQuery(Query):
    path = serializers.CharField(default="", allow_blank=True, trim_whitespace=False, max_length=LONGEST_PATH)
    after = serializers.CharField(default="", allow_blank=True, trim_whitespace=False, max_length=1000)


class ContentQuery(Query):
    path = serializers.CharField(trim_whitespace=False, max_length=LONGEST_PATH)
    upload = serializers.RegexField(r"\A[A-Za-z0-9_-]{0,64}\Z", default="", allow_blank=True)


class DeleteQuery(Query):
    path = serializers.CharField(trim_whitespace=False, max_length=LONGEST_PATH)
    recursive = serializers.BooleanField(default=False)


class NewFolder(StrictSerializer):
    path = serializers.CharField(trim_whitespace=False, max_length=LONGEST_PATH)


class NewPath(StrictSerializer):
    to = serializers.CharField(trim_whitespace=False, max_length=LONGEST_PATH)


class FilesSessionView(OneVolumeView):
    @extend_schema(
        summary=gettext_noop("The session that serves its files"),
        responses=answers({200: SessionShape}, 404),
    )
    def get(self, request: Request, id: UUID) -> Response:
        sessions.require(self.actor, self.volume)
        return Response(session_json(sessions.open_one(self.volume)))

    @extend_schema(
        summary=gettext_noop("Open its files: start the session that serves them"),
        description="It needs no GPU, and ends after ten minutes without use, or when a run needs the volume.",
        request=NoBody,
        responses=answers({202: SessionShape, 200: SessionShape}, 404, 409),
    )
    def post(self, request: Request, id: UUID) -> Response:
        checked(NoBody, request)
        session, is_new = sessions.start(self.actor, self.volume)
        return Response(session_json(session), status=202 if is_new else 200)

    @extend_schema(
        summary=gettext_noop("Close its files: end the session"),
        responses=answers({202: SessionShape, 200: SessionShape}, 404),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        changed = sessions.end(self.actor, self.volume)
        return Response(session_json(sessions.open_one(self.volume)), status=202 if changed else 200)


class FilesView(OneVolumeView):
    @extend_schema(
        summary=gettext_noop("Files in a folder, by name"),
        parameters=[PATH, OpenApiParameter("after", str, description="Only names behind it.")],
        responses=answers({200: FolderShape}, 404, 409, 422),
    )
    def get(self, request: Request, id: UUID) -> Response:
        session = sessions.ready_one(self.actor, self.volume)
        _, found = client.ask(session, "GET", "/list", **FolderQuery.of(request))
        writes = session.writes and sessions.may_open(self.actor, self.volume, writes=True)
        return Response(FolderShape(found | {"read_only": not writes}).data)

    @extend_schema(
        summary=gettext_noop("Create a folder"),
        request=NewFolder,
        responses=answers({201: NewFolder}, 404, 409, 422),
    )
    def post(self, request: Request, id: UUID) -> Response:
        session = sessions.ready_one(self.actor, self.volume, writes=True)
        body = checked(NewFolder, request)
        client.ask(session, "POST", "/folder", **body)
        return Response(body, status=201)


class ContentView(OneVolumeView):
    @extend_schema(
        summary=gettext_noop("Download a file"),
        description="`Range` works.",
        parameters=[PATH],
        responses=answers({(200, "application/octet-stream"): bytes}, 404, 409, 422),  # type: ignore[dict-item]
    )
    def get(self, request: Request, id: UUID) -> Response:
        return self._carried(request, writes=False)

    @extend_schema(
        summary=gettext_noop("Upload a file"),
        description=(
            "Whole, or in pieces with `Content-Range: bytes FIRST-LAST/SIZE`, one after the other: 202 with what was "
            "received, and 201 with the last. `Content-Range: bytes */SIZE` without a body asks how much is there. "
            "The file has its name once it is whole; a file of that name is replaced."
        ),
        parameters=[
            PATH,
            OpenApiParameter(
                "upload", str, description="Your word for this upload, if several could be mixed up."
            ),
        ],
        request={"application/octet-stream": bytes},
        responses=answers({201: UploadShape, 202: UploadShape}, 404, 409, 422),
    )
    def put(self, request: Request, id: UUID) -> Response:
        return self._carried(request, writes=True)

    def _carried(self, request: Request, *, writes: bool) -> Response:
        """Check all that can be checked, and leave the content to the door."""
        session = sessions.ready_one(self.actor, self.volume, writes=writes)
        query = ContentQuery.of(request)
        scope = getattr(request._request, "scope", {})
        if SLOT not in scope:
            raise away()
        leave(
            scope, Errand(self.actor, session, self.volume, **query, writes=writes, language=get_language())
        )
        return Response(status=204)

    @extend_schema(
        summary=gettext_noop("Rename or move a file or folder"),
        parameters=[PATH],
        request=NewPath,
        responses=answers({200: NewPath}, 404, 409, 422),
    )
    def patch(self, request: Request, id: UUID) -> Response:
        session = sessions.ready_one(self.actor, self.volume, writes=True)
        path, body = ContentQuery.of(request)["path"], checked(NewPath, request)
        client.ask(session, "POST", "/move", path=path, to=body["to"])
        return Response(body)

    @extend_schema(
        summary=gettext_noop("Delete a file or folder"),
        description="202: a large folder is not empty yet, send it again.",
        parameters=[
            PATH,
            OpenApiParameter("recursive", bool, description="A folder with all that is in it."),
        ],
        responses=answers({204: None, 202: None}, 404, 409, 422),
    )
    def delete(self, request: Request, id: UUID) -> Response:
        session = sessions.ready_one(self.actor, self.volume, writes=True)
        query = DeleteQuery.of(request)
        recursive = "true" if query["recursive"] else ""
        status, _ = client.ask(session, "DELETE", "/content", path=query["path"], recursive=recursive)
        return Response(status=204 if status == 200 else 202)


def session_json(session: FilesSession | None) -> dict[str, Any]:
    if session is None:
        return {"phase": "none", "read_only": False, "by": None, "created_at": None, "problem": None}
    return {
        "phase": session.phase,
        "read_only": not session.writes,
        "by": session.by.get_username(),
        "created_at": session.created_at,
        "problem": problems.shown(session.problem, session.problem_data),
    }
