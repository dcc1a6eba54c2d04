"""Network access: NetworkPolicies, and Ingresses of dashboards."""
