"""Simulator that runs generated traces of a few weeks through the queue's own decisions, in virtual time.

`trace.py` defines the requests, `everyday.py` and `deadline.py` generate two traces, `policies.py` has the rules that
are compared, `engine.py` simulates time, `foretold.py` compares forecasts with the outcome, and `figures.py`
makes the results. Only people and clocks are simulated: `decide()` and `forecast()` are the real ones.
"""
