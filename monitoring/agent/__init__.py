"""The node agent: reports the activity, the holders and the problems of one machine's GPUs.

It runs on every node with GPUs (`python -m monitoring.agent`), beside people's work. So it must cost next to nothing.
It must stay up where everything else is broken: without a GPU, a driver, a kubelet or a portal. It imports the standard
library and pynvml, and nothing else of Berth. Start with running.py and look.py.
"""
