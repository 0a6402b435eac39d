"""Delete kept answers and tickets when a person's access changes: they may show what the person lost."""

from typing import Any

from accounts.locks import for_change
from accounts.models import IdempotentAnswer, SocketTicket, User


def forget_answers(sender: Any, users: set[User], **kwargs: Any) -> None:
    for_change(IdempotentAnswer.objects.filter(user__in=users)).delete()
    for_change(SocketTicket.objects.filter(user__in=users)).delete()
