"""Replays made traces of a few weeks through the queue's own decisions, in virtual time, and says what became of them.

`trace.py` says what is asked for, `everyday.py` and `deadline.py` make two kinds of it, `policies.py` are the rules
that are compared, `engine.py` lets the time pass, `foretold.py` holds the forecasts to what came of them, and
`figures.py` makes tables. Everything but people and clocks is the real thing: `decide()` and `forecast()`.
"""
