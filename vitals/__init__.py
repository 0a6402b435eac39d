"""Signs of life of Berth's own processes: when each was last heard, and what each has counted.

The lowest room: every other room may beat and count, and vitals imports none of them. Many processes on many machines
come and go, so their reports are rows with the database's time, and any web process can show them.
"""
