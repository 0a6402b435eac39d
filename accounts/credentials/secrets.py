"""Encryption of secrets in the database that must be read again (not only checked), with the installation's key.

The key is derived from SECRET_KEY. To change SECRET_KEY, put the old one into BERTH_SECRET_KEY_FALLBACKS: secrets
encrypted with it stay readable.
"""

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class Unreadable(Exception):
    """A secret that was encrypted with a key that this installation no longer knows."""


def encrypt(text: str) -> str:
    return _ciphers(settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS).encrypt(text.encode()).decode()


def decrypt(text: str) -> str:
    try:
        return _ciphers(settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS).decrypt(text.encode()).decode()
    except InvalidToken:
        raise Unreadable("put the key that was in use before into BERTH_SECRET_KEY_FALLBACKS") from None


@lru_cache(maxsize=4)
def _ciphers(*keys: str) -> MultiFernet:
    return MultiFernet([Fernet(base64.urlsafe_b64encode(_derive(key))) for key in keys])


def _derive(key: str) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=b"berth: secrets at rest").derive(key.encode())


def rotated(text: str) -> str | None:
    """Return the secret encrypted with the present key; None if it is already, or if it is empty."""
    if not text:
        return None
    try:
        _ciphers(settings.SECRET_KEY).decrypt(text.encode())
    except InvalidToken:
        return encrypt(decrypt(text))
    return None
