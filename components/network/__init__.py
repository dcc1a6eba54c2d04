"""Who reaches what over the network: NetworkPolicies, and Ingresses of dashboards."""
