"""Parts of a cluster that Berth depends on: do they run, do their versions fit, how loaded are the nodes?"""
