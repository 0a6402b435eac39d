"""What `make up` says when it cannot go on: one line for the person at the terminal, no traceback."""


class Refusal(Exception):
    """The message says what is wrong and what to do."""
