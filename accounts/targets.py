"""Page to return to after a form: always one of ours, whatever the request says."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest
from django.shortcuts import resolve_url
from django.utils.http import url_has_allowed_host_and_scheme


def safe_target(request: HttpRequest) -> str:
    """Return `next` of the form or the address if it is within this site, else the first page. A word without a slash
    does not count: it would be taken for the name of a page."""
    target = request.POST.get("next") or request.GET.get("next", "")
    inside = "/" in target and url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return target if inside else resolve_url(settings.LOGIN_REDIRECT_URL)
