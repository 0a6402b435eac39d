from tests.cluster_fixtures import kubeconfig

__all__ = ["kubeconfig"]
