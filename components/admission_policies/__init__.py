"""ValidatingAdmissionPolicies: rules of `policies/` that the API server itself enforces, whoever makes the object."""
