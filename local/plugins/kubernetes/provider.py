"""The provider's side of Pulumi's protocol (`pulumirpc.ResourceProvider`): converts requests, answers and errors."""

import functools
from collections.abc import Callable
from importlib.metadata import version
from typing import TypeVar

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from local.plugins.kubernetes import invokes, settings, state
from local.plugins.kubernetes.check import check
from local.plugins.kubernetes.cluster import Cluster
from local.plugins.kubernetes.diff import changes, contains, parse_property_path, property_path
from local.plugins.kubernetes.engine import Engine
from local.plugins.kubernetes.errors import (
    ApiError,
    CancelledError,
    NoSuchKindError,
    NotReadyError,
    RefusedError,
    UnreachableError,
)
from local.plugins.kubernetes.objects import Kind, id_of, is_autonamed, name_of, namespace_of
from local.plugins.kubernetes.operations import Operations
from local.plugins.kubernetes.replaced_fields import replaced_fields
from local.plugins.kubernetes.values import Json, decode, encode, plain, without_nulls
from local.plugins.kubernetes.waiting import Waits

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Method = Callable[["Provider", _Request, grpc.ServicerContext], _Response]

_FAILURES = (
    ApiError, CancelledError, NoSuchKindError, NotReadyError, RefusedError, UnreachableError, ValueError
)  # fmt: skip


def _answers_failures(method: _Method[_Request, _Response]) -> _Method[_Request, _Response]:
    """Answers errors with their message alone: the engine shows it to the user."""

    @functools.wraps(method)
    def guarded(self: "Provider", request: _Request, context: grpc.ServicerContext) -> _Response:
        try:
            return method(self, request, context)
        except _FAILURES as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))

    return guarded


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """A provider process. The engine configures it once and then uses it from many threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waits = Waits(engine)
        self._settings = settings.Settings()
        self._cluster: Cluster | None = None
        self._unreachable = "the provider is not configured"

    def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ProviderHandshakeResponse:
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True, supports_autonaming_configuration=True)

    def GetPluginInfo(self, request: Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=version("pulumi-kubernetes"))

    def CheckConfig(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        default = request.urn.split("::")[-1].startswith("default")
        failures = settings.complaints(plain(decode(request.news)), default)
        return provider_pb2.CheckResponse(
            inputs=request.news,
            failures=[
                provider_pb2.CheckFailure(property=name, reason=reason) for name, reason in sorted(failures.items())
            ],
        )

    def DiffConfig(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        changed, replaces = settings.changes(plain(decode(request.olds)), plain(decode(request.news)))
        return provider_pb2.DiffResponse(changes=_changes(bool(changed)), diffs=changed, replaces=replaces)

    def Configure(
        self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        self._settings = settings.Settings.read(request.variables)
        try:
            self._cluster = Cluster(self._settings)
        except UnreachableError as error:
            # Not an error yet: a preview of a stack that creates its own cluster reaches this point without one.
            self._unreachable = str(error)
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, supportsPreview=True, supports_autonaming_configuration=True
        )

    @_answers_failures
    def Check(self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext) -> provider_pb2.CheckResponse:
        if self._cluster is None and self._settings.skip_update_unreachable:
            self._engine.warn(request.urn, "Cluster is unreachable but skipUpdateUnreachable is set to true, skipping")
            return provider_pb2.CheckResponse(inputs=request.olds)
        autonaming = request.autonaming if request.HasField("autonaming") else None
        news = without_nulls(decode(request.news))
        inputs = check(request.urn, decode(request.olds), news, request.randomSeed, autonaming, self._cluster)
        return provider_pb2.CheckResponse(inputs=encode(inputs))

    @_answers_failures
    def Diff(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        old = plain(state.from_program(decode(request.old_inputs))) or plain(state.inputs_of(decode(request.olds)))
        old, new = state.as_stored(old), state.as_stored(plain(state.from_program(decode(request.news))))
        if not self._namespaced(new):
            old, new = _without_namespace(old), _without_namespace(new)
        ignored = [parse_property_path(path) for path in request.ignoreChanges]
        found = [change for change in changes(old, new) if not any(contains(path, change.path) for path in ignored)]
        fields = replaced_fields(
            new,
            config_map_mutable=self._settings.enable_config_map_mutable,
            secret_mutable=self._settings.enable_secret_mutable,
        )
        replaces = [property_path(change.path) for change in found if change.replaces(fields)]
        before, after = Kind.of_object(old), Kind.of_object(new)
        if found and (before.group, before.kind) != (after.group, after.kind):
            replaces += [property_path(change.path) for change in found if change.path in (("apiVersion",), ("kind",))]
        return provider_pb2.DiffResponse(
            changes=_changes(bool(found)),
            replaces=replaces,
            deleteBeforeReplace=bool(replaces) and _must_make_room(new, state.live_of(decode(request.olds))),
            detailedDiff={
                property_path(change.path): provider_pb2.PropertyDiff(
                    kind=_diff_kind(change.how, property_path(change.path) in replaces), inputDiff=True
                )
                for change in found
            },
            hasDetailedDiff=True,
        )

    @_answers_failures
    def Create(self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext) -> provider_pb2.CreateResponse:
        inputs = state.from_program(decode(request.properties))
        if request.preview:
            known = state.predict_create(inputs) if self._cluster is None else self._operations().preview_create(inputs)
            return provider_pb2.CreateResponse(properties=encode(known))
        outputs, problem = self._operations().create(request.urn, inputs, request.timeout)
        if problem:
            _abort_partial(context, outputs, problem)
        return provider_pb2.CreateResponse(id=id_of(plain(outputs)), properties=encode(outputs))

    @_answers_failures
    def Read(self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext) -> provider_pb2.ReadResponse:
        if self._cluster is None:
            return self._read_unreachable(request)
        inputs, olds = state.from_program(decode(request.inputs)), decode(request.properties)
        found = self._operations().read(request.urn, request.id, olds, inputs)
        if found is None:
            return provider_pb2.ReadResponse()
        outputs, inputs, problem = found
        if problem:
            _abort_partial(context, outputs, problem, inputs)
        return provider_pb2.ReadResponse(id=request.id, properties=encode(outputs), inputs=encode(inputs))

    @_answers_failures
    def Update(self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext) -> provider_pb2.UpdateResponse:
        olds, inputs = decode(request.olds), state.from_program(decode(request.news))
        ignored = list(request.ignoreChanges)
        if request.preview and self._cluster is None:
            return provider_pb2.UpdateResponse(properties=encode(state.foresee_update(inputs, state.live_of(olds))))
        if request.preview:
            foreseen = self._operations().preview_update(olds, inputs, ignored)
            return provider_pb2.UpdateResponse(properties=encode(foreseen))
        outputs, problem = self._operations().update(request.urn, olds, inputs, ignored, request.timeout)
        if problem:
            _abort_partial(context, outputs, problem)
        return provider_pb2.UpdateResponse(properties=encode(outputs))

    @_answers_failures
    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> Empty:
        if self._cluster is None and self._settings.delete_unreachable:
            self._engine.warn(request.urn, f"removed from the state only: {self._unreachable}")
            return Empty()
        self._operations().delete(request.urn, request.id, decode(request.properties), request.timeout)
        return Empty()

    @_answers_failures
    def Invoke(self, request: provider_pb2.InvokeRequest, context: grpc.ServicerContext) -> provider_pb2.InvokeResponse:
        answer = invokes.invoke(request.tok, plain(decode(request.args)), self._cluster)
        response = provider_pb2.InvokeResponse()
        getattr(response, "return").CopyFrom(encode(answer))  # a keyword of Python
        return response

    def Construct(
        self, request: provider_pb2.ConstructRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConstructResponse:
        """Components that the plugin itself would run: Helm's Chart v4, Directory v2, ConfigFile and ConfigGroup v2."""
        context.abort(grpc.StatusCode.UNIMPLEMENTED, f"the stand-in does not do {request.type}; use the real plugin")

    def GetSchema(
        self, request: provider_pb2.GetSchemaRequest, context: grpc.ServicerContext
    ) -> provider_pb2.GetSchemaResponse:
        """Not supported: the schema is too large to include (20 MB). Answers with an error, e.g. for `runtime:
        yaml`."""
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "the stand-in has no schema; use the real plugin")

    def Cancel(self, request: Empty, context: grpc.ServicerContext) -> Empty:
        self.stop()
        return Empty()

    def stop(self) -> None:
        """Ends all waits; each operation answers with its current result."""
        self._waits.cancel()

    def _operations(self) -> Operations:
        """Raises: UnreachableError: there is no cluster to operate on."""
        if self._cluster is None:
            raise UnreachableError(
                f"configured Kubernetes cluster is unreachable: {self._unreachable}\nIf the cluster was deleted, "
                "remove its resources from the state by running again with PULUMI_K8S_DELETE_UNREACHABLE=true."
            )
        return Operations(self._cluster, self._settings, self._waits)

    def _read_unreachable(self, request: provider_pb2.ReadRequest) -> provider_pb2.ReadResponse:
        if self._settings.delete_unreachable:
            self._engine.warn(request.urn, f"removed from the state: {self._unreachable}")
            return provider_pb2.ReadResponse()
        if self._settings.skip_update_unreachable:
            self._engine.warn(request.urn, f"taken from the state: {self._unreachable}")
            return provider_pb2.ReadResponse(id=request.id, properties=request.properties, inputs=request.inputs)
        self._operations()
        raise AssertionError("without a cluster there are no operations")

    def _namespaced(self, obj: Json) -> bool:
        if self._cluster is None:
            return True
        try:
            return self._cluster.discovery.find(Kind.of_object(obj)).namespaced
        except NoSuchKindError:
            return True


def _without_namespace(obj: Json) -> Json:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return obj
    return obj | {"metadata": {key: value for key, value in metadata.items() if key != "namespace"}}


def _must_make_room(new: Json, live: Json) -> bool:
    """Whether a replacement conflicts with the old object: the program set the name, and it is the same."""
    same_name = name_of(new) == name_of(live) and (namespace_of(new) or "default") == (namespace_of(live) or "default")
    return same_name and not is_autonamed(new)


def _changes(some: bool) -> provider_pb2.DiffResponse.DiffChanges.ValueType:
    return provider_pb2.DiffResponse.DIFF_SOME if some else provider_pb2.DiffResponse.DIFF_NONE


def _diff_kind(how: str, replaces: bool) -> provider_pb2.PropertyDiff.Kind.ValueType:
    return provider_pb2.PropertyDiff.Kind.Value(f"{how.upper()}_REPLACE" if replaces else how.upper())


def _abort_partial(
    context: grpc.ServicerContext, outputs: Json, problem: NotReadyError, inputs: Json | None = None
) -> None:
    """Fails in the way that keeps the object in the state, with its problem."""
    reasons = [str(problem), *problem.details]
    detail = provider_pb2.ErrorResourceInitFailed(
        id=id_of(plain(outputs)),
        properties=encode(outputs),
        reasons=reasons,
        inputs=None if inputs is None else encode(inputs),
    )
    packed = AnyMessage()
    packed.Pack(detail)
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=reasons[0], details=[packed])
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, reasons[0])
