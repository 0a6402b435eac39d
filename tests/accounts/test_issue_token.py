from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from accounts.credentials import tokens
from accounts.models import AuditEntry
from tests.accounts.people import People


def issue(*words: str) -> str:
    output = StringIO()
    call_command("issue_token", *words, stdout=output, stderr=StringIO())
    return output.getvalue()


def test_the_last_line_is_a_token_that_works(people: People) -> None:
    secret = issue("alice", "--scopes", "read", "workspaces").splitlines()[-1]
    token = tokens.authenticate(secret)
    assert (token.user, token.scopes, token.tenant) == (people.alice.user, ["read", "workspaces"], None)
    assert AuditEntry.objects.get().data["user"] == "alice"


def test_it_can_be_bound_to_a_tenant_and_to_a_time(people: People) -> None:
    token = tokens.authenticate(issue("alice", "--scopes", "read", "--tenant", "demo", "--days", "3").strip())
    assert token.tenant == people.demo
    assert (token.expires_at - token.created_at).days in (2, 3)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nobody", "--scopes", "read"), "no person “nobody”"),
        (("alice", "--scopes", "all"), "invalid choice: 'all'"),
        (("alice", "--scopes", "admin"), "Only admins"),
        (("alice", "--scopes", "read", "--tenant", "second"), "in no tenant “second”"),
        (("alice", "--scopes", "read", "--days", "0"), "1 to 366 days"),
    ],
)
def test_what_is_wrong_is_said_in_plain_words(people: People, words: tuple[str, ...], says: str) -> None:
    with pytest.raises(CommandError, match=says):
        issue(*words)


def test_a_deactivated_person_gets_none(people: People) -> None:
    people.bob.user.is_active = False
    people.bob.user.save()
    with pytest.raises(CommandError, match="deactivated"):
        issue("bob", "--scopes", "read")
