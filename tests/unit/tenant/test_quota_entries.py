"""Each entry of a quota counts something, or is refused with what is meant."""

import pytest

from components.tenant.settings import problems_of_entries


@pytest.mark.parametrize(
    "entry",
    [
        *("cpu", "limits.ephemeral-storage", "services", "hugepages-2Mi", "requests.hugepages-1Gi"),
        *("requests.nvidia.com/gpu", "requests.nvidia.com/mig-1g.5gb", "requests.amd.com/gpu"),
        *("count/rayjobs.ray.io", "count/secrets", "count/deployments.apps", "count/certificates.cert-manager.io"),
        *("fast.storageclass.storage.k8s.io/requests.storage", "gpu.deviceclass.resource.k8s.io/devices"),
    ],
)
def test_an_entry_that_counts_something_passes(entry: str) -> None:
    assert list(problems_of_entries({entry: "3"})) == []


@pytest.mark.parametrize(
    ("entry", "meant"),
    [
        ("nvidia.com/gpu", "did you mean 'requests.nvidia.com/gpu'?"),
        ("limits.nvidia.com/gpu", "did you mean 'requests.nvidia.com/gpu'?"),
        ("requests.nvidia.com/gpus", "did you mean 'requests.nvidia.com/gpu'?"),
        ("example.com/fpga", "did you mean 'requests.example.com/fpga'?"),
        ("count/raycluster.ray.io", "did you mean 'count/rayclusters.ray.io'?"),
        ("count/job.batch", "did you mean 'count/jobs.batch'?"),
        ("count/rayclusters", "use one of"),
        ("request.cpu", "did you mean 'requests.cpu'?"),
        ("gpus", "use one of cpu, memory"),
    ],
)
def test_an_entry_that_counts_nothing_is_refused_with_what_is_meant(entry: str, meant: str) -> None:
    [problem] = problems_of_entries({entry: "3"})
    assert problem.message.startswith(f"Kubernetes counts nothing for {entry!r} in a quota: {meant}")


@pytest.mark.parametrize(("entry", "most"), [("services", "500m"), ("count/secrets", "1.5")])
def test_objects_are_counted_in_whole_numbers(entry: str, most: str) -> None:
    assert [each.message for each in problems_of_entries({entry: most})] == [
        f"{most!r} is not a number of objects: write a whole one"
    ]
