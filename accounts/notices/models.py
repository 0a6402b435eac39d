"""Notices, and people's preferences for them. A notice stores codes and figures; its words are made when it is read."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from accounts.notices.kinds import Kind


class Notice(models.Model):
    """A notice to one person, and the state of its mail: the row is also the mail's outbox entry."""

    class Mail(models.TextChoices):
        NONE = "none", _("not by mail")
        WAITING = "waiting", _("waiting to be sent")
        SENT = "sent", _("sent")
        NEEDLESS = "needless", _("no longer needed")
        GIVEN_UP = "given_up", _("failed")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notices", verbose_name=_("user")
    )
    kind = models.CharField(_("kind"), max_length=16, choices=Kind)
    # Chosen by the sender: a person gets one notice per key.
    key = models.CharField(max_length=120)
    # Kind of subject; the room that registered it makes the words.
    subject = models.CharField(max_length=16)
    subject_id = models.UUIDField()
    data = models.JSONField(default=dict, help_text=_("Codes and figures; never a secret."))
    at = models.DateTimeField(_("sent on"), auto_now_add=True, db_index=True)
    in_berth = models.BooleanField(_("shown in Berth"))
    read_at = models.DateTimeField(pgettext_lazy("a notice", "read"), null=True)

    mail = models.CharField(_("mail"), max_length=8, choices=Mail, default=Mail.NONE)
    mail_due_at = models.DateTimeField(_("next attempt"), null=True)
    # When a sending pass for this mail was last enqueued, so that not every tick enqueues one.
    mail_pass_at = models.DateTimeField(null=True)
    mail_attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    mail_error = models.CharField(_("last error"), max_length=240, blank=True)
    mail_settled_at = models.DateTimeField(_("sent or failed"), null=True)

    class Meta:
        verbose_name = _("notice")
        verbose_name_plural = _("notices")
        ordering: ClassVar = ["-at", "-id"]
        indexes: ClassVar = [
            models.Index(fields=["user", "-at", "-id"], condition=Q(in_berth=True), name="notice_list"),
            models.Index(fields=["mail_due_at"], condition=Q(mail="waiting"), name="notice_outbox"),
            models.Index(fields=["at"], name="notice_age"),  # old ones are deleted every few seconds
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "key"], name="one_notice_of_a_thing_per_person"),
            models.CheckConstraint(
                condition=Q(mail="waiting", mail_due_at__isnull=False)
                | (~Q(mail="waiting") & Q(mail_due_at__isnull=True)),
                name="mail_that_waits_has_a_time",
            ),
        ]

    def __str__(self) -> str:
        return gettext("%(user)s: %(kind)s") % {"user": self.user, "kind": self.get_kind_display()}


class NoticePreference(models.Model):
    """A person's ways for one kind of notice; without a row, `kinds.DEFAULTS` holds."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=16, choices=Kind)
    in_berth = models.BooleanField()
    by_mail = models.BooleanField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "kind"], name="one_preference_per_person_and_kind")
        ]
