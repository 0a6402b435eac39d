"""The node agent: reports the activity, the holders and the problems of one machine's GPUs.

It runs on every node with GPUs (`python -m monitoring.agent`), beside people's work. So it must cost next to nothing.
It must stay up where everything else is broken: without a GPU, a driver, a kubelet or a portal. It imports the standard
library and pynvml, and nothing else of Berth.

    nvml.py          the only place that calls pynvml: a value, "not offered", or a named failure
    inventory.py     facts about the GPUs       samples.py     their activity       xids.py   errors as they happen
    causes.py        known causes of missing GPU data
    kubelet.py       which container has which GPU, from the kubelet (unary.py: one gRPC call without a library)
    pods.py          the GPU behind a kubelet's device, and the pod of a process
    look.py          one look at everything, as a report (schema.py)
    exposition.py    the last report for Prometheus
    push.py          reports to the portal: kept while it is away, the oldest dropped when there are too many
    __main__.py      settings, signals, start and end
"""
