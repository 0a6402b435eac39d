"""supervisord with one change: a line that its log cannot take is dropped.

Unchanged, it writes such a failure to its stderr, which is on the same full disk, and dies of that with all parts.
"""

from supervisor import loggers, supervisord


def main() -> None:
    loggers.Handler.handleError = lambda _: None
    supervisord.main()


if __name__ == "__main__":
    main()
