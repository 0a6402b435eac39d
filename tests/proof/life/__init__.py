"""A day of life: many people and many faults at once, drawn from one seed; then quiet, and everything is reckoned up.

people    what each of them does, drawn at random; office: what the admin does on the admin's pages
faults    what breaks meanwhile
sockets   browsers that listen, and come back when they were cut off
observer  what the cluster itself says of pods and other objects, watched independently of Berth
records   what all of these wrote down, and the rows of the database
sharing   of the reckoning: quotas, borrowing, what is asked back, limits
reckoning what must hold of such records: pure functions, each tested to be able to fail
day       one day: begin, live, end in quiet
"""
