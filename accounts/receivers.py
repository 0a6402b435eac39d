"""What accounts itself forgets when a person's access changes: answers kept for retries may show what they lost."""

from typing import Any

from accounts.models import IdempotentAnswer, SocketTicket, User


def forget_answers(sender: Any, user: User, **kwargs: Any) -> None:
    IdempotentAnswer.objects.filter(user=user).delete()
    SocketTicket.objects.filter(user=user).delete()
