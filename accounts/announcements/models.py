"""Table of announcements."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.text import visible

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class Announcement(models.Model):
    """A sentence on every page for a time. With `no_launches_from` it is maintenance from then until its end."""

    class Level(models.TextChoices):
        INFO = "info", _("info")
        WARNING = "warn", _("warning")
        SEVERE = "bad", _("severe")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    text = models.CharField(_("text"), max_length=500, validators=[visible])
    level = models.CharField(_("severity"), max_length=4, choices=Level, default=Level.INFO)
    shown_from = models.DateTimeField(_("shown from"), default=timezone.now)
    shown_until = models.DateTimeField(
        _("shown until"), null=True, blank=True, help_text=_("Empty: until somebody ends it.")
    )
    no_launches_from = models.DateTimeField(
        _("no launches from"),
        null=True,
        blank=True,
        help_text=_(
            "For maintenance: from then until its end nothing new starts, except by admins. What runs is not "
            "affected, and requests wait. Empty: launches go on."
        ),
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("announcement")
        verbose_name_plural = _("announcements")
        ordering: ClassVar = ["-shown_from", "id"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(shown_until=None) | Q(shown_until__gt=F("shown_from")),
                name="announcement_ends_after_its_begin",
            ),
            models.CheckConstraint(
                condition=Q(no_launches_from=None) | Q(no_launches_from__gte=F("shown_from")),
                name="announcement_comes_before_its_maintenance",
            ),
        ]

    def __str__(self) -> str:
        return self.text

    def clean(self) -> None:
        problems: dict[str, StrOrPromise] = {}
        begins: datetime | None = self.shown_from  # empty if a form left it out
        if self.shown_until and begins and self.shown_until <= begins:
            problems["shown_until"] = _("It ends before it begins.")
        if self.no_launches_from:
            if begins and self.no_launches_from < begins:
                problems["no_launches_from"] = _("Announce it before: this is earlier than “shown from”.")
            elif self.shown_until and self.no_launches_from >= self.shown_until:
                problems["no_launches_from"] = _("The announcement has ended by then.")
        if problems:
            raise ValidationError(problems)
