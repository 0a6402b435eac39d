"""The node agent: says what the GPUs of one machine do, who has them, and what is wrong with them.

It runs on every node with GPUs (`python -m monitoring.agent`), beside people's work, so it must cost next to nothing
and must stay up where everything else is broken: without a GPU, without a driver, without a kubelet, without a portal.
It imports the standard library and pynvml, and nothing else of Berth.

    nvml.py          the only place that calls pynvml: what answers, what does not offer, what fails
    inventory.py     what the GPUs are          samples.py     what they do         xids.py   errors as they happen
    causes.py        why there is nothing to see, by its known cause
    kubelet.py       who holds which GPU, asked of the kubelet (over unary.py, one gRPC call without a library)
    pods.py          which GPU a kubelet's device is, which pod a process belongs to
    look.py          one look at all of this, as a report (schema.py)
    exposition.py    the last report for Prometheus
    push.py          reports to the portal: kept while it is away, the oldest dropped when there are too many
    __main__.py      settings, threads, the end
"""
