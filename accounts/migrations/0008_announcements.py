"""Announcements and maintenance."""

import uuid

import django.utils.timezone
from django.db import migrations, models

import accounts.text


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0007_notices_of_volumes"),
    ]

    operations = [
        migrations.CreateModel(
            name="Announcement",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "text",
                    models.CharField(max_length=500, validators=[accounts.text.visible], verbose_name="text"),
                ),
                (
                    "level",
                    models.CharField(
                        choices=[("info", "info"), ("warn", "warning"), ("bad", "severe")],
                        default="info",
                        max_length=4,
                        verbose_name="severity",
                    ),
                ),
                (
                    "shown_from",
                    models.DateTimeField(default=django.utils.timezone.now, verbose_name="shown from"),
                ),
                (
                    "shown_until",
                    models.DateTimeField(
                        blank=True,
                        help_text="Empty: until somebody ends it.",
                        null=True,
                        verbose_name="shown until",
                    ),
                ),
                (
                    "no_launches_from",
                    models.DateTimeField(
                        blank=True,
                        help_text="For maintenance: from then until its end nothing new starts, except by admins. What runs is not affected, and requests wait. Empty: launches go on.",
                        null=True,
                        verbose_name="no launches from",
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
            ],
            options={
                "verbose_name": "announcement",
                "verbose_name_plural": "announcements",
                "ordering": ["-shown_from", "id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("shown_until", None),
                            ("shown_until__gt", models.F("shown_from")),
                            _connector="OR",
                        ),
                        name="announcement_ends_after_its_begin",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("no_launches_from", None),
                            ("no_launches_from__gte", models.F("shown_from")),
                            _connector="OR",
                        ),
                        name="announcement_comes_before_its_maintenance",
                    ),
                ],
            },
        ),
    ]
