"""Rules as the API server takes them: what each says in CEL stands beside its Python (policies/rules/)."""
