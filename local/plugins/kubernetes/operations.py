"""Creates, reads, updates and deletes one object, like Pulumi's plugin in server-side apply mode."""

from dataclasses import dataclass

from local.plugins.kubernetes import fields, state
from local.plugins.kubernetes.cluster import Cluster
from local.plugins.kubernetes.diff import adopted, reconciled
from local.plugins.kubernetes.errors import (
    PATCH_FORCE,
    ApiError,
    NoSuchKindError,
    NotReadyError,
    RefusedError,
    UnreachableError,
    refused_create,
    refused_update,
)
from local.plugins.kubernetes.objects import (
    CRD,
    Kind,
    annotation,
    at,
    id_of,
    is_true,
    name_of,
    namespace_of,
    split_id,
    unique_name,
)
from local.plugins.kubernetes.readiness import SKIP_AWAIT, STORAGE_CLASS, Rule, claim_rule, rule_for
from local.plugins.kubernetes.settings import Settings
from local.plugins.kubernetes.values import Json, has_unknown, mark_like, plain
from local.plugins.kubernetes.waiting import FAILED, Waits

FIELD_MANAGER = "pulumi.com/patchFieldManager"
PROPAGATION = "pulumi.com/deletionPropagationPolicy"
TIMEOUT = "pulumi.com/timeoutSeconds"

_PAUSES = (0.5, 1, 2, 4, 8)
"""Seconds between attempts to create an object whose namespace or CRD may not exist yet."""
_ATTEMPTS = 5
_DELETE_SECONDS = 600
_UNREADY = "failed to fully initialize or become live"
_CLAIM = Kind("", "v1", "PersistentVolumeClaim")

_UNAWAITED = frozenset(
    {("", "Namespace"), ("", "Pod"), ("", "ReplicationController"), ("batch", "Job"),
     ("apps", "DaemonSet"), ("apps", "Deployment"), ("apps", "StatefulSet")}
)  # fmt: skip
"""Kinds whose deletion is not awaited under `pulumi.com/skipAwait`; the deletion of all others is."""


@dataclass
class Operations:
    """The operations of one configured provider on objects; inputs and states keep their marks of secrets.

    Raises (every operation): `RefusedError` if nothing was done, `NotReadyError` if the object was written but is not
    ready, `UnreachableError` if the server does not answer.
    """

    cluster: Cluster
    settings: Settings
    waits: Waits

    def create(self, urn: str, inputs: Json, timeout: float) -> tuple[Json, NotReadyError | None]:
        """Creates the object and waits for it; the state comes with the error if it did not become ready."""
        obj, manager = plain(inputs), _manager(inputs, {})
        live = self._create(obj, manager)
        unready = (
            f'resource "{urn}" was successfully created, but the Kubernetes API server reported that it {_UNREADY}'
        )
        live, error = self._settle(urn, obj, live, timeout, unready)
        return state.pack(live, inputs, manager, obj["apiVersion"]), error

    def preview_create(self, inputs: Json) -> Json:
        """The server's result of a dry run; values that it cannot know yet stay as in the program."""
        obj = plain(inputs)
        if has_unknown(inputs) or not self._knows(Kind.of_object(obj)):
            return state.predict_create(inputs)
        try:
            live = self.cluster.create(obj, fields.CREATOR, dry_run=True)
        except ApiError as error:
            if error.namespace_not_found or error.already_exists or error.forbidden:
                # The namespace comes with the same program, the object is about to be replaced, or dry runs are
                # forbidden.
                return state.predict_create(inputs)
            raise refused_create(error) from error
        return state.pack(state.predict_create(live), inputs, _manager(inputs, {}), obj["apiVersion"])

    def update(
        self, urn: str, olds: Json, inputs: Json, ignored: list[str], timeout: float
    ) -> tuple[Json, NotReadyError | None]:
        """Applies the inputs to the live object and waits for it."""
        obj, manager = plain(inputs), _manager(inputs, olds)
        live, error = self._update(obj, olds, manager, ignored)
        if error is None:
            unready = f'the Kubernetes API server reported that "{id_of(live)}" {_UNREADY}'
            live, error = self._settle(urn, obj, live, timeout, unready)
        before = state.manager_of(olds)
        if error is None and before and before != manager:
            self._relinquish(live, before)
        version = state.api_version_of(olds) or obj["apiVersion"]
        return state.pack(live, inputs, manager, version), error

    def preview_update(self, olds: Json, inputs: Json, ignored: list[str]) -> Json:
        """The server's result of a dry run of the update; with unknown inputs, the inputs."""
        obj, before = plain(inputs), state.live_of(olds)
        if has_unknown(inputs) or not self._knows(Kind.of_object(obj)):
            return state.foresee_update(inputs, before)
        manager = _manager(inputs, olds)
        try:
            live = self._apply(obj, self._current(before, obj), manager, ignored, dry_run=True)
        except ApiError as error:
            if error.forbidden:
                return state.foresee_update(inputs, before)
            raise refused_update(error, manager) from error
        return state.pack(live, inputs, manager, state.api_version_of(olds) or obj["apiVersion"])

    def read(
        self, urn: str, identifier: str, olds: Json, inputs: Json
    ) -> tuple[Json, Json, NotReadyError | None] | None:
        """The live state and the inputs that match it; None if the object (or its kind) does not exist any more.

        Without old inputs the live object is used unchanged: that is an import, or a program's `.get()`.
        """
        namespace, name = split_id(identifier)
        program_inputs = state.as_stored(plain(inputs))
        kind = Kind.of_object(program_inputs) if program_inputs.get("kind") else Kind.of_urn(urn)
        try:
            live = self.cluster.get(kind, namespace, name)
        except NoSuchKindError:
            return None
        except ApiError as error:
            if error.not_found:
                return None
            raise RefusedError(f"failed to read {kind} {identifier!r}: {error}") from error
        manager = _manager(inputs, olds)
        if not program_inputs:
            found, problem = adopted(live), None
        else:
            found, problem = (
                reconciled(program_inputs, self._expected(program_inputs, manager), live),
                self._unready(program_inputs, live),
            )
        marked = state.hide(mark_like(found, inputs), {})
        version = state.api_version_of(olds) or kind.api_version
        return state.pack(live, marked, manager, version), marked, problem

    def delete(self, urn: str, identifier: str, olds: Json, timeout: float) -> None:
        """Deletes the object and waits for that; succeeds if the object or its kind does not exist any more."""
        live, inputs = state.live_of(olds), plain(state.inputs_of(olds))
        kind = Kind.of_object(live)
        namespace, name = split_id(identifier)
        policy = annotation(inputs, PROPAGATION).lower()
        propagation = {"orphan": "Orphan", "background": "Background"}.get(policy, "Foreground")
        try:
            self.cluster.delete(kind, namespace, name, propagation)
        except NoSuchKindError:
            return
        except ApiError as error:
            if error.not_found:
                return
            raise RefusedError(f"deletion of {kind} {identifier!r} failed: {error}") from error
        if kind == CRD:
            self.cluster.discovery.forget()
        if not (is_true(inputs, SKIP_AWAIT) and (kind.group, kind.kind) in _UNAWAITED):
            self.waits.until_gone(self.cluster, urn, live, _seconds(timeout, inputs, _DELETE_SECONDS))

    def _knows(self, kind: Kind) -> bool:
        try:
            self.cluster.discovery.find(kind)
        except NoSuchKindError:
            return False
        return True

    def _create(self, obj: Json, manager: str) -> Json:
        for pause in (*_PAUSES, None):
            try:
                if self.settings.upsert_existing_objects:
                    live = self.cluster.apply(obj, manager, force=self._forces(obj))
                else:
                    live = self.cluster.create(obj, fields.CREATOR)
            except (ApiError, NoSuchKindError) as error:
                missing = isinstance(error, NoSuchKindError) or error.not_found
                if pause is None or not missing:
                    raise refused_create(error) from error
                self.waits.pause(pause)
            else:
                return live
        raise AssertionError("the last attempt returns or raises")

    def _update(self, obj: Json, olds: Json, manager: str, ignored: list[str]) -> tuple[Json, NotReadyError | None]:
        try:
            current = self._current(state.live_of(olds), obj)
        except (ApiError, NoSuchKindError) as error:
            raise refused_update(error, manager) from error
        for attempt in range(_ATTEMPTS):
            try:
                if patch := [] if Kind.of_object(obj) == CRD else fields.take_over(current, manager):
                    current = self.cluster.patch(current, patch)
                return self._apply(obj, current, manager, ignored), None
            except ApiError as error:
                stale = error.conflict and not at(error.body, "details", "causes")
                if not stale or attempt == _ATTEMPTS - 1:
                    # As with Pulumi's plugin, the new inputs are stored, so that the next run tries again.
                    return current, NotReadyError(str(refused_update(error, manager)), current)
                current = self._current(current, obj)
        raise AssertionError("the last attempt returns")

    def _current(self, before: Json, obj: Json) -> Json:
        return self.cluster.get(Kind.of_object(obj), namespace_of(before), name_of(before))

    def _apply(self, obj: Json, current: Json, manager: str, ignored: list[str], dry_run: bool = False) -> Json:
        obj = obj | {"metadata": obj["metadata"] | {"name": name_of(current)}}
        if Kind.of_object(obj) == CRD:
            # Replaced as a whole, like `kubectl replace`: an apply would keep versions that the new CRD does not have.
            version = {"resourceVersion": current["metadata"]["resourceVersion"]}
            live = self.cluster.replace(obj | {"metadata": obj["metadata"] | version}, manager, dry_run)
            self.cluster.discovery.forget()
            return live
        force = self._forces(obj) or not fields.managed(current) or (dry_run and fields.created_by_us(current))
        desired = fields.leave_ignored(obj, current, manager, ignored)
        return self.cluster.apply(desired, manager, force=force, dry_run=dry_run)

    def _forces(self, obj: Json) -> bool:
        return self.settings.enable_patch_force or is_true(obj, PATCH_FORCE)

    def _relinquish(self, live: Json, manager: str) -> None:
        bare = {"apiVersion": live["apiVersion"], "kind": live["kind"]}
        names = {key: live["metadata"][key] for key in ("name", "namespace") if key in live["metadata"]}
        self.cluster.apply(bare | {"metadata": names}, manager, force=True)

    def _expected(self, inputs: Json, manager: str) -> Json | None:
        try:
            return self.cluster.apply(inputs, manager, force=True, dry_run=True)
        except (ApiError, NoSuchKindError):
            # The server refuses the inputs in the state (an admission webhook, a narrower role): compare them
            # unchanged.
            return None

    def _rule(self, obj: Json, live: Json) -> Rule | None:
        rule = rule_for(obj, live)
        if rule is None and Kind.of_object(live) == _CLAIM and not is_true(obj, SKIP_AWAIT):
            return claim_rule(self._binds_late(live))
        return rule

    def _binds_late(self, claim: Json) -> bool:
        try:
            storage_class = self.cluster.get(STORAGE_CLASS, "", at(claim, "spec", "storageClassName") or "")
        except ApiError:
            return False
        return storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"

    def _settle(
        self, urn: str, obj: Json, live: Json, timeout: float, unready: str
    ) -> tuple[Json, NotReadyError | None]:
        """Waits until a written object is ready. No error from here on may lose the fact that it exists.

        `unready`: the beginning of an error.
        """
        try:
            rule = self._rule(obj, live)
            if rule:
                live = self.waits.until_ready(self.cluster, urn, live, rule, _seconds(timeout, obj, rule.seconds))
        except NotReadyError as error:
            return error.last_seen, NotReadyError(f"{unready}: {error}", error.last_seen, error.details)
        except (ApiError, NoSuchKindError, RefusedError, UnreachableError) as error:
            return live, NotReadyError(f"{unready}: {error}", live)
        finally:
            if Kind.of_object(live) == CRD:
                self.cluster.discovery.forget()
        return live, None

    def _unready(self, obj: Json, live: Json) -> NotReadyError | None:
        rule = rule_for(obj, live)
        if rule is None or not rule.on_read:
            return None
        others = (
            self.cluster.list(rule.others[0], namespace_of(live), labelSelector=rule.others[1]) if rule.others else []
        )
        verdict = rule.check(live, others)
        if verdict.ready or verdict.settles:
            return None
        return NotReadyError(FAILED.format(name=name_of(live)), live, [verdict.message])


def _manager(inputs: Json, olds: Json) -> str:
    configured = annotation(plain(inputs), FIELD_MANAGER)
    return configured or state.manager_of(olds) or unique_name("pulumi-kubernetes-", b"")


def _seconds(timeout: float, obj: Json, default: float) -> float:
    """The time limit: the resource's custom timeout, its annotation, or the kind's default."""
    configured = annotation(obj, TIMEOUT)
    return timeout or (float(configured) if configured.isdecimal() else default)
