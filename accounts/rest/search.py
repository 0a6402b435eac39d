"""`?search=` of every list of the API, within the bounds of `accounts/search.py`."""

from __future__ import annotations

from rest_framework.exceptions import ValidationError
from rest_framework.filters import SearchFilter
from rest_framework.request import Request

from accounts.search import too_much


class BoundedSearch(SearchFilter):
    def get_search_terms(self, request: Request) -> list[str]:
        """Return the words. Raise ValidationError, which becomes 400 with `fields`, if they are too many."""
        if problem := too_much(request.query_params.get(self.search_param, "")):
            raise ValidationError({self.search_param: [problem]})
        terms: list[str] = super().get_search_terms(request)
        return terms
