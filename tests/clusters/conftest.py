from tests.cluster_fixtures import api, kubeconfig, namespace, reached_cluster

__all__ = ["api", "kubeconfig", "namespace", "reached_cluster"]
