"""The gate: what `make test` and `make test-slow` add to pytest.

`plugin.py` runs a red test again, alone, and tells the time; `verdict.py` (pure) decides; `pace.py` measures how fast
the machine is; `fingerprint.py` says whether the trial cluster's own tests are due; `mutations.py` proves that the
suites still catch faults. docs/development/tests.md tells how to use them.
"""
