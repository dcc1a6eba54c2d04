"""ValidatingAdmissionPolicies: rules of `policies/` that the API server enforces for all objects."""
