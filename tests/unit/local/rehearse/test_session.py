"""The errors of a failed `pulumi up`, as a report quotes them, and a rehearsal of which a part ends."""

from pathlib import Path
from typing import NoReturn

import pytest
from kubernetes import client

from local import paths
from local.errors import RehearsalError
from local.nodes import SimulatedNodes
from local.plugins import select
from local.rehearse import session as rehearse_session
from local.rehearse.cluster import Cluster
from local.rehearse.session import Session, diagnostics, folder, violations
from local.supervision import Program, daemonize

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


def test_a_part_that_ends_is_named_and_its_log_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands meet only an API server that does not answer."""
    monkeypatch.setattr(rehearse_session, "install_missing", lambda _tools: None)
    monkeypatch.setattr(SimulatedNodes, "build", lambda *_: None)
    session = Session("dev", paths.ROOT / "Pulumi.dev.yaml", select("stand-in"), tmp_path / "run")
    supervisor = session.rehearsal.supervisor

    def run(*_: object) -> NoReturn:
        program = Program("kube-apiserver", ["sh", "-c", "echo out of memory; exit 1"], {})
        supervisor.start([program], lambda command, variables: daemonize(command, variables, tmp_path / "run"))
        supervisor.launch(program.name)
        configuration = client.Configuration()
        configuration.host, configuration.proxy = "http://127.0.0.1:9", None
        Cluster(client.ApiClient(configuration)).states()
        raise AssertionError

    monkeypatch.setattr(session, "_run", run)
    with pytest.raises(RehearsalError, match=r"kube-apiserver has ended \(with exit status 1[\s\S]*out of memory"):
        session.run()
    assert not list(supervisor.strays())
    assert (tmp_path / "run" / "logs" / "kube-apiserver.log").read_text() == "out of memory\n"
    session.end()
    assert not (tmp_path / "run").exists()
