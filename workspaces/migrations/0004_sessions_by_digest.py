"""Replace each session's key by its digest, as `accounts/credentials/sessions.py` stores it: nobody is signed out.

Sessions are of Django and passes of this app. Both change in one transaction, at whose end PostgreSQL checks the key
between them. The way back cannot compute a key from its digest: it deletes all sessions, and people sign in again.
"""

from django.db import migrations

OF_SESSIONS = """
    UPDATE django_session SET session_key = left(encode(sha256(convert_to(session_key, 'UTF8')), 'hex'), 40)
"""
OF_PASSES = """
    UPDATE workspaces_gatewaypass SET session_id = left(encode(sha256(convert_to(session_id, 'UTF8')), 'hex'), 40)
"""


class Migration(migrations.Migration):
    dependencies = [
        ("sessions", "0001_initial"),
        ("workspaces", "0003_refused_input"),
    ]

    operations = [
        migrations.RunSQL(
            [OF_SESSIONS, OF_PASSES],
            ["DELETE FROM workspaces_gatewaypass", "DELETE FROM django_session"],
        )
    ]
