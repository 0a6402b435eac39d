"""Refusal of `make up`: one line for the person at the terminal, no traceback."""


class Refusal(Exception):
    """The message says what is wrong and what to do."""
