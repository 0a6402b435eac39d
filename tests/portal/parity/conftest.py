"""Failing examples show the values that they compared, as tests do."""

import pytest

pytest.register_assert_rewrite("tests.portal.parity.examples")
