"""Helpers for tests against devcluster, of this package and of other projects.

```python
for cluster in running(tmp_path, "--pods", "played"):  # devcluster.testing.cluster
    space = cluster.fresh()                            # path of a new namespace
    cluster.create(f"{space}/pods", pod("one"))
    cluster.until(f"{space}/pods/one", is_ready)
```
"""
