"""The API server's validation of new pods, on the pod template of a manifest. Pure functions.

A CRD's schema describes only the structure of the templates in it, so the API server accepts a RayCluster whose pods it
refuses later, one after the other. These are the rules of those pods: k8s.io/kubernetes v1.36.5,
pkg/apis/core/validation/validation.go (ValidatePodCreate), after the defaults of pkg/apis/core/v1/defaults.go.
tests/differential compares them with the API server's own functions.

The version of the cluster is unknown here, so what 1.36 is the first to allow stays refused, and what it is the first
to refuse is refused for older clusters, too: their next upgrade would keep the pods from being created.

Not checked: fields of Windows, and of the deprecated volumes of single vendors all but the required ones.
"""

from kuberay.pod_template.pod import problems_of_template

__all__ = ["problems_of_template"]
