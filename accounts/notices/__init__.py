"""Notices to people: in Berth, as a browser notification and by mail.

A room above reports an event (`notifying.notify`, in the event's own transaction) and gives the words when they are
needed (`words.register`). This package holds the rest: people's preferences, the list, and the mail's outbox.
"""
