"""A day of life: many people and many faults at once, drawn from one seed; then quiet, and everything is checked.

people    actions of each person, drawn at random; office: the admin's actions on the admin pages
faults    faults that happen meanwhile
sockets   browsers that listen, and reconnect when they are cut off
observer  the cluster's own record of pods and other objects, watched independently of Berth
records   everything that the modules above wrote down, and the rows of the database
sharing   part of the reckoning: quotas, borrowing, preemption, limits
reckoning checks of such records: pure functions, each tested to be able to fail
day       one day: begin, live, end in quiet
"""
