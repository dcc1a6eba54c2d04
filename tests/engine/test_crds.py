"""The provider of CustomResourceDefinitions against a real API server, as Pulumi's plugin calls it."""

from collections.abc import Iterator

import pytest
from pulumi.dynamic import CreateResult, ReadResult, UpdateResult

from components.cluster import ClusterUnreachableError
from components.crds.definitions import Definition, definitions_of, referred
from components.crds.live import DefinitionError, differences
from components.dynamic.definitions import DefinitionsProvider
from components.dynamic.guards import CrdGuardProvider, InUseError
from components.kubernetes_cluster import cluster_of
from core.body import Body
from local.rehearsal import Rehearsal
from testbed.kubectl import Kubectl

pytestmark = [pytest.mark.engine, pytest.mark.shared_cluster]

NAMES = ("boats.sea.example", "ports.sea.example")
MANAGER = "pulumi-ray-platform-sea"


def crd(name: str, **fields: str) -> Body:
    """A definition whose objects' `spec` has fields of these types."""
    plural, _, group = name.partition(".")
    spec = {"type": "object", "properties": {field: {"type": kind} for field, kind in fields.items()}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    names = {"plural": plural, "singular": plural[:-1], "kind": plural[:-1].title()}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {"group": group, "scope": "Cluster", "names": names, "versions": versions},
    }


def definitions(*bodies: Body) -> list[Definition]:
    return definitions_of(referred(list(bodies)))


def inputs(*bodies: Body) -> Body:
    digests = {each.name: each.digest for each in definitions(*bodies)}
    return {"owner": "Sea", "release": "1.0.0", "definitions": digests, "fieldManager": MANAGER, "connection": {}}


@pytest.fixture
def kubectl(cluster: Rehearsal, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kubectl]:
    """Connects the provider to the cluster by its kubeconfig. Deletes the definitions at the end."""
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    cluster_of({}).renew()
    yield Kubectl(cluster)
    Kubectl(cluster).does("delete", "crd", "--ignore-not-found", *NAMES)
    cluster_of({}).renew()


@pytest.fixture
def provider() -> DefinitionsProvider:
    return DefinitionsProvider(CrdGuardProvider("Sea"))


def made(result: CreateResult | UpdateResult | ReadResult) -> Body:
    assert result.outs is not None
    return result.outs


def schema(kubectl: Kubectl, name: str) -> str:
    return kubectl.does("get", "crd", name, "-o", "jsonpath={.spec.versions[0].schema}")


def test_created_definitions_are_served_when_create_returns(kubectl: Kubectl, provider: DefinitionsProvider) -> None:
    outs = made(provider.create(inputs(crd(NAMES[0], size="integer"), crd(NAMES[1]))))
    boat = {"apiVersion": "sea.example/v1", "kind": "Boat", "metadata": {"name": "one"}, "spec": {"size": 3}}
    kubectl.does("create", "-f", "-", bodies=[boat])
    assert set(outs["applied"]) == set(NAMES)
    assert provider.read("definitions", outs).outs == outs
    kubectl.does("delete", "boat", "one")


def test_an_update_applies_changed_definitions_and_deletes_removed_ones(
    kubectl: Kubectl, provider: DefinitionsProvider
) -> None:
    olds = made(provider.create(inputs(crd(NAMES[0], size="integer"), crd(NAMES[1]))))
    news = inputs(crd(NAMES[0], size="integer", crew="string"))
    assert provider.diff("definitions", olds, news).changes
    outs = made(provider.update("definitions", olds, news))
    assert '"crew"' in schema(kubectl, NAMES[0])
    assert kubectl.tries("get", "crd", NAMES[1]).returncode != 0
    assert not provider.diff("definitions", outs, news).changes
    assert provider.read("definitions", outs).outs == outs


def test_a_refresh_reports_who_changed_a_definition_and_the_update_reverts_it(
    kubectl: Kubectl, provider: DefinitionsProvider
) -> None:
    desired = inputs(crd(NAMES[0], size="integer"), crd(NAMES[1]))
    outs = made(provider.create(desired))
    changed = crd(NAMES[0], size="string")
    kubectl.does("apply", "--server-side", "--force-conflicts", "--field-manager=somebody", "-f", "-", bodies=[changed])
    kubectl.does("delete", "crd", NAMES[1])
    seen = made(provider.read("definitions", outs))
    assert seen["definitions"] == {NAMES[0]: "changed by somebody"}
    assert provider.diff("definitions", seen, desired).changes
    assert list(differences(cluster_of({}), definitions(crd(NAMES[0], size="integer")), MANAGER)) == [
        f"CRD {NAMES[0]} was changed by somebody: an update corrects it"
    ]
    outs = made(provider.update("definitions", seen, desired))
    assert '"integer"' in schema(kubectl, NAMES[0])
    assert made(provider.read("definitions", outs))["definitions"] == desired["definitions"]


def test_a_label_of_another_manager_is_not_a_change(kubectl: Kubectl, provider: DefinitionsProvider) -> None:
    outs = made(provider.create(inputs(crd(NAMES[0]))))
    kubectl.does("label", "crd", NAMES[0], "team=harbour")
    assert provider.read("definitions", outs).outs == outs
    assert list(differences(cluster_of({}), definitions(crd(NAMES[0])), MANAGER)) == []


def test_a_preview_names_the_fields_that_change(kubectl: Kubectl, provider: DefinitionsProvider) -> None:
    provider.create(inputs(crd(NAMES[0], size="integer", sails="integer")))
    desired = definitions(crd(NAMES[0], size="string", crew="string"), crd(NAMES[1]))
    assert list(differences(cluster_of({}), desired, MANAGER)) == [
        f"CRD {NAMES[0]} changes: adds v1 spec.crew; removes v1 spec.sails; changes v1 spec.size"
    ]


def test_existing_definitions_are_taken_over_only_if_configured(
    kubectl: Kubectl, provider: DefinitionsProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl.does("apply", "--server-side", "--field-manager=helm", "-f", "-", bodies=[crd(NAMES[0], size="string")])
    desired = inputs(crd(NAMES[0], size="integer"))
    with pytest.raises(
        DefinitionError, match=rf"Sea's CRDs already exist.*: {NAMES[0]} \(of helm\). To use the existing ones"
    ):
        provider.create(desired)
    assert '"string"' in schema(kubectl, NAMES[0])
    monkeypatch.setenv("PULUMI_K8S_UPSERT_EXISTING_OBJECTS", "true")
    provider.create(desired)
    assert '"integer"' in schema(kubectl, NAMES[0])


def test_an_interrupted_create_continues(kubectl: Kubectl, provider: DefinitionsProvider) -> None:
    provider.create(inputs(crd(NAMES[0])))
    assert set(made(provider.create(inputs(crd(NAMES[0]), crd(NAMES[1]))))["applied"]) == set(NAMES)


def test_neither_an_update_nor_a_deletion_deletes_definitions_in_use(
    kubectl: Kubectl, provider: DefinitionsProvider
) -> None:
    outs = made(provider.create(inputs(crd(NAMES[0]), crd(NAMES[1]))))
    port = {"apiVersion": "sea.example/v1", "kind": "Port", "metadata": {"name": "harbour"}}
    kubectl.does("create", "-f", "-", bodies=[port])
    with pytest.raises(InUseError, match="Sea's CRDs are not deleted while there is Port harbour"):
        provider.update("definitions", outs, inputs(crd(NAMES[0])))
    with pytest.raises(InUseError, match="Port harbour"):
        provider.delete("definitions", outs)
    kubectl.does("get", "port", "harbour")
    kubectl.does("delete", "port", "harbour")
    provider.delete("definitions", outs)
    assert provider.read("definitions", outs).id == ""
    provider.delete("definitions", outs)


def test_a_definition_that_the_api_server_refuses_is_an_error_with_its_reason(
    kubectl: Kubectl, provider: DefinitionsProvider
) -> None:
    wrong = crd(NAMES[0])
    wrong["spec"]["scope"] = "Everywhere"
    with pytest.raises(ClusterUnreachableError, match=r"spec\.scope"):
        provider.create(inputs(wrong))


def test_names_of_another_definition_are_an_error_at_once(kubectl: Kubectl, provider: DefinitionsProvider) -> None:
    other = crd(NAMES[1])
    other["spec"]["names"]["kind"] = "Boat"
    provider.create(inputs(crd(NAMES[0])))
    with pytest.raises(DefinitionError, match=rf"CRD {NAMES[1]} is not established: .*Boat"):
        provider.create({**inputs(other), "fieldManager": "pulumi-ray-platform-other"})
