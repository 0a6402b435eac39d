"""Notices: what a person should hear of without looking, in Berth, as a browser notification and by mail.

A room above says what happened (`telling.tell`, in the transaction of the thing itself) and gives the words when they
are needed (`words.register`). Everything between is here: who wants to hear of what, the list, and the mail's outbox.
"""
