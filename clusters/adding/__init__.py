"""Adding a cluster: the kubeconfig that somebody pastes, and what the cluster tells of itself."""
