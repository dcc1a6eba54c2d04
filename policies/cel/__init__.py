"""Rules in CEL, for the API server. Each expression is beside the Python check of its rule (policies/rules/)."""
