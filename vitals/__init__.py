"""Signs of life of Berth's own processes: who was heard when, and what each has counted.

The lowest room: every other may beat and count, and it knows none of them. Processes are many, on many machines, and
come and go; so what they say lies in rows, by the database's clock, and any web process can tell it.
"""
