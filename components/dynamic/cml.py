"""The dynamic resources of a cluster on Cloudera ML, and their providers.

Their inputs are in the state, the API key is not: a provider reads it from its environment, or from the configuration
of the stack that Pulumi passes to it.
"""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from pulumi import Output, ResourceOptions
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    ConfigureRequest,
    CreateResult,
    DiffResult,
    ReadResult,
    UpdateResult,
)

from components.cml.authorities import certificates_for_workers
from components.cml.client import Client, CmlError, NotFoundError, api_key
from components.cml.manifests import GENERATION, Inputs, script_path
from components.cml.reconcile import Applications, difference, summary
from components.dynamic import Provider, Resource
from components.pulumi_internals import without_traceback
from components.waiting import report

KEY = "cmlApiKey"
"""Key of the stack's configuration with the API key, encrypted by Pulumi."""

_OUTPUTS = ("applications", "state", "joined")

_SECRET = ResourceOptions(additional_secret_outputs=["token", "former"])

_MOST_SHOWN = 5
"""Names in a message: a workspace has dozens of runtimes."""


class _Provider(Provider):
    _configured: str | None = None

    def configure(self, req: ConfigureRequest) -> None:
        without_traceback()
        self._configured = req.config.get(KEY)

    def __getstate__(self) -> dict[str, Any]:
        # The state of the stack has the pickled provider.
        return {}

    @contextmanager
    def _client(self, props: Mapping[str, Any]) -> Iterator[Client]:
        # A preview does not know the token of a new cluster.
        token = [props["token"]] if isinstance(props.get("token"), str) else []
        secret = [*token, *_former(props)]
        client = Client(props["host"], api_key(self._configured), props["caFile"], secrets=secret)
        try:
            yield client
        finally:
            client.close()


class ClaimProvider(_Provider):
    """The names of a cluster's applications, and Ray's token, before any application exists.

    It creates nothing in Cloudera ML. So whatever is interrupted later, the state has the claim, and its deletion finds
    all applications by their names: also half-made ones, and those of projects that the cluster had before.

    Inputs: `manifests.claim`. Outputs: the same, `token`, in `former` the tokens before it, and in `projects` all
    projects that the cluster ever had.
    """

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult(props["prefix"], {**props, "token": secrets.token_urlsafe(32), "former": []})

    replacing = ("host", "prefix")

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        moved = self.moved(olds, news)
        same = set(news["projects"]) <= set(olds["projects"]) and olds.get("script") == news.get("script")
        changes = bool(moved) or not same or any(olds.get(key) != news.get(key) for key in ("caFile", GENERATION))
        return DiffResult(changes=changes, replaces=moved, delete_before_replace=True)

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        projects = list(dict.fromkeys([*news["projects"], *olds["projects"]]))
        tokens = [olds["token"], *_former(olds)]
        if olds[GENERATION] != news[GENERATION]:
            # Applications have the old one until they are replaced.
            tokens.insert(0, secrets.token_urlsafe(32))
        return UpdateResult({**news, "projects": projects, "token": tokens[0], "former": tokens[1:]})

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        with self._client(props) as client:
            _of_state(client, props, of_claim=True).clean()


class NodesProvider(_Provider):
    """The applications of a cluster.

    Inputs: `manifests.nodes`, `token` and `former`. Outputs: the same, and `reconcile.summary`.
    """

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Refuses what Cloudera ML would refuse: the key, a project, a runtime, too many GPUs."""
        try:
            with self._client(news) as client:
                failures = [CheckFailure(*each) for each in _refused(client, news)]
        except CmlError as error:
            failures = [CheckFailure("host", str(error))]
        return CheckResult(news, failures)

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult(props["prefix"], self._made(props))

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        with self._client(props) as client:
            applications = _of_state(client, props)
            live, nodes, step = applications.look()
        found = {**props, **summary(step, live, nodes, suspended=props["suspend"])}
        if not live and applications.unseen:
            return ReadResult("", found)
        return ReadResult(id_, found if step.done else {**found, "differs": difference(step)})

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        changed = any(
            olds.get(key) != news.get(key) for key in news if key not in _OUTPUTS and not key.startswith("__")
        )
        return DiffResult(changes=changed or self._differs(news))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        made = self._made(news, olds)
        with self._client(news) as client:
            for project in olds["projects"]:
                if script_path(olds) != script_path(news) or project not in news["projects"]:
                    client.remove(project, script_path(olds))
        return UpdateResult(made)

    def delete(self, _id: str, props: dict[str, Any]) -> None:
        with self._client(props) as client:
            applications = _of_state(client, props)
            applications.clean()
        if applications.unseen:
            raise CmlError(
                f"no project of {props['cluster']} was found (404): check that the key's user sees them. If they were "
                "deleted, run `pulumi refresh`, which removes the nodes of the cluster from the state"
            )

    def _made(self, props: dict[str, Any], olds: Mapping[str, Any] | None = None) -> dict[str, Any]:
        inputs = {key: value for key, value in props.items() if key not in _OUTPUTS and key != "differs"}
        before = olds or inputs
        with self._client(props) as client:
            served, former = bool(before.get("serve")), _former(inputs)
            applications = Applications(
                client, inputs, inputs["token"], before["projects"], former=former, served=served
            )
            return {**inputs, **applications.make()}

    def _differs(self, inputs: dict[str, Any]) -> bool:
        """Whether an application is missing, has failed, or differs. What cannot be read is not a difference."""
        if not isinstance(inputs.get("token"), str):
            return False
        try:
            with self._client(inputs) as client:
                step = Applications(client, inputs, inputs["token"], former=_former(inputs)).look()[2]
        except CmlError as error:
            report(f"warning: the applications of {inputs['cluster']} were not compared: {error}")
            return False
        if not step.done:
            report(f"{inputs['cluster']}: {difference(step)}")
        return not step.done


def _of_state(client: Client, props: Mapping[str, Any], *, of_claim: bool = False) -> Applications:
    """The applications that a state has. Which of its projects the stack file still has is not known here.

    `of_claim`: whether it is the claim's, which has all tokens: that of nodes lacks the token of an `up` that failed.
    """
    inputs, former = {**props, "projects": []}, _former(props)
    return Applications(client, inputs, props["token"], props["projects"], former=former, all_tokens=of_claim)


def _former(props: Mapping[str, Any]) -> list[str]:
    """The tokens before the present one; none in a preview that does not know them."""
    found = props.get("former")
    return list(found) if isinstance(found, list) else []


def _refused(client: Client, inputs: Inputs) -> Iterator[tuple[str, str]]:
    for project in inputs["projects"]:
        try:
            client.applications(project)
        except NotFoundError as error:
            yield "projects", f"project {project!r}: {error}"
    groups = {"head": inputs["head"], **inputs["groups"]}
    if desired := {group["runtime"] for group in groups.values() if group.get("runtime")}:
        known = client.runtimes()
        for runtime in sorted(desired - set(known)):
            near = get_close_matches(runtime, known, _MOST_SHOWN, 0) or "none"
            yield "groups", f"runtime {runtime!r} is not registered in Cloudera ML: register it, or use another: {near}"
    if inputs["caFile"] and any(group["replicas"] for group in inputs["groups"].values()):
        try:
            certificates_for_workers(inputs["caFile"])
        except ValueError as error:
            yield "caFile", str(error)
    gpus = max(int(group["gpus"]) for group in groups.values())
    if gpus and (most := client.most_gpus()) is not None and gpus > most:
        yield "groups", f"{gpus} GPUs are more than an application may have here, which is {most}: set fewer"


class CmlClaim(Resource, module="ray-platform", name="CmlClaim"):
    """The names of a cluster's applications and Ray's token. Its deletion deletes all applications.

    Outputs:
        token: Ray's token, a secret.
        former: the tokens before it, a secret.
    """

    token: Output[str]
    former: Output[list[str]]

    def __init__(self, name: str, inputs: Inputs, opts: ResourceOptions | None = None) -> None:
        props = {**inputs, "token": None, "former": None}
        super().__init__(ClaimProvider(), name, props, ResourceOptions.merge(opts, _SECRET))


class CmlNodes(Resource, module="ray-platform", name="CmlNodes"):
    """The applications of a cluster. `up` waits until all have joined.

    Outputs:
        applications: by name, status and state of the node.
        state: `ready` or `suspended`.
        joined: the number of workers in the cluster.
    """

    applications: Output[dict[str, dict[str, str | None]]]
    state: Output[str | None]
    joined: Output[int]

    def __init__(self, name: str, inputs: Inputs, claim: CmlClaim, opts: ResourceOptions | None = None) -> None:
        props = {**inputs, "token": claim.token, "former": claim.former, **dict.fromkeys(_OUTPUTS)}
        super().__init__(NodesProvider(), name, props, ResourceOptions.merge(opts, _SECRET))
