"""Last comparison of the directory with the accounts, and what came of it."""

from __future__ import annotations

from django.db import models


class DirectorySync(models.Model):
    """One row (pk 1): what `manage.py doctor` and the alerts read, and by which the next run is due."""

    class Outcome(models.TextChoices):
        DONE = "done"
        HELD_BACK = "held_back"  # too many would have left at once
        FAILED = (
            "failed"  # the directory did not answer, or not in full; or some people could not be followed
        )

    began_at = models.DateTimeField(auto_now_add=True)  # the first run that there was
    tried_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=12, choices=Outcome)
    reason = models.CharField(max_length=500, blank=True)
    people = models.PositiveIntegerField(default=0, help_text="Accounts that were compared.")
    leaving = models.PositiveIntegerField(default=0, help_text="Accounts that left, or would have left.")
