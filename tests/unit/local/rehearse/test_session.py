"""The errors of a failed `pulumi up`, as a report quotes them."""

import pytest

from local import paths
from local.rehearse.session import diagnostics, folder, violations

pytestmark = pytest.mark.unit

FAILED = """Updating (prod):
 +  kubernetes:batch/v1:Job nightly creating (0s) error: the Kubernetes API server refused it

Diagnostics:
  kubernetes:batch/v1:Job (nightly):
    error: 1 error occurred:
        * admission webhook "jobs.example.com" denied the request: no jobs at night

  pulumi:pulumi:Stack (ray-platform-prod):
    error: update failed

Resources:
    + 12 created
    1 errored

Duration: 1m5s
"""


def test_the_diagnostics_of_an_update_are_its_errors() -> None:
    assert diagnostics(FAILED) == (
        "1 error occurred:",
        '* admission webhook "jobs.example.com" denied the request: no jobs at night',
    )


BROKEN = """Updating (prod):
Policies:
    ❌ ray-platform-policies@v0.1.0 (local: policies)
        - [mandatory] [severity: critical]  pod-no-host  (kubernetes:ray.io/v1:RayCluster: training)
          Pods have a network, processes and memory of their own.
          RayCluster/team-a/training: spec.headGroupSpec.template.spec.hostNetwork: shares it with the node. Remove it.
        - [advisory] [severity: low]  img-digest  (kubernetes:ray.io/v1:RayCluster: training)
          Images are pinned by their digest.
          RayCluster/team-a/training: spec.headGroupSpec.template.spec.containers[0].image: has no digest. Add it.

Diagnostics:
  pulumi:pulumi:Stack (ray-platform-prod):
    error: update failed

"""


def test_violations_of_mandatory_rules_are_errors() -> None:
    place = "RayCluster/team-a/training: spec.headGroupSpec.template.spec.hostNetwork"
    assert violations(BROKEN) == (f"pod-no-host: {place}: shares it with the node. Remove it.",)
    assert diagnostics(BROKEN) == ()
    assert violations(FAILED) == ()


def test_an_update_that_printed_no_errors_has_none_in_the_report() -> None:
    assert diagnostics("Updating (prod):\n") == ()


def test_a_rehearsal_has_a_folder_beside_that_of_make_up() -> None:
    assert folder("prod") == paths.ROOT / ".rehearsal-prod"
