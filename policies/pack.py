"""The policy pack: a gRPC server that Pulumi's engine calls (proto/pulumi/analyzer.proto in pulumi/pulumi).

It implements the protocol itself. Pulumi's SDK for policies reads every resource once for each rule, with the megabytes
of KubeRay's CRDs. It also removes the marks of secrets, and ends a rule at the first unknown value.
"""

import itertools
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from types import MappingProxyType

import grpc
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc, plugin_pb2
from pydantic import ValidationError

from core.environment import environment_of, group_of
from policies.configuration import Configuration, Level, PoliciesSettings
from policies.decode import judged_object, mended
from policies.judge import Finding, Judge, Report
from policies.read import ConfigurationError, of_config, of_pack
from policies.rule import Rule, Severity
from policies.rules import BY_ID, RULES
from policies.values import Object
from policies.walk import Stack

NAME = "ray-platform-policies"

_LARGEST = 400 * 1024 * 1024
"""Bytes of a message, as in the engine (pulumi sdk/go/common/util/rpcutil/serve.go)."""

_LEVELS = {
    Level.ADVISORY: analyzer_pb2.ADVISORY,
    Level.MANDATORY: analyzer_pb2.MANDATORY,
    Level.REMEDIATE: analyzer_pb2.REMEDIATE,
    Level.DISABLED: analyzer_pb2.DISABLED,
}
_SEVERITIES = {
    Severity.LOW: analyzer_pb2.POLICY_SEVERITY_LOW,
    Severity.MEDIUM: analyzer_pb2.POLICY_SEVERITY_MEDIUM,
    Severity.HIGH: analyzer_pb2.POLICY_SEVERITY_HIGH,
    Severity.CRITICAL: analyzer_pb2.POLICY_SEVERITY_CRITICAL,
}


class Pack(analyzer_pb2_grpc.AnalyzerServicer):
    """Judges the resources of one stack: each before it is created, and all of them at the end."""

    def __init__(
        self, configuration: Configuration, stack: str, config: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """`stack` and its `config` select the levels; the engine may pass both later. Raises ConfigurationError."""
        self._pack_configuration = configuration
        self._set_stack(stack, config)
        self._objects: dict[str, Object | None] = {}
        self._findings: dict[str, list[Finding]] = {}

    def Handshake(  # noqa: N802 (gRPC prescribes the names of methods)
        self, request: analyzer_pb2.AnalyzerHandshakeRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzerHandshakeResponse:
        """Requests nothing from the engine."""
        return analyzer_pb2.AnalyzerHandshakeResponse()

    def ConfigureStack(  # noqa: N802
        self, request: analyzer_pb2.AnalyzerStackConfigureRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzerStackConfigureResponse:
        """Sets the name of the stack and the policies in its configuration."""
        try:
            self._set_stack(request.stack, request.config)
        except ConfigurationError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return analyzer_pb2.AnalyzerStackConfigureResponse()

    def GetPluginInfo(  # noqa: N802
        self, request: empty_pb2.Empty, context: grpc.ServicerContext
    ) -> plugin_pb2.PluginInfo:
        """The version of the SDK whose protocol the pack implements."""
        return plugin_pb2.PluginInfo(version=version("pulumi"))

    def GetAnalyzerInfo(  # noqa: N802
        self, request: empty_pb2.Empty, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzerInfo:
        """All rules, with their levels in this stack."""
        policies = self._configuration.environment(self._stack)
        return analyzer_pb2.AnalyzerInfo(
            name=NAME,
            supportsConfig=True,
            policies=[_policy(rule, policies.level_of(rule)) for rule in RULES],
        )

    def Configure(  # noqa: N802
        self, request: analyzer_pb2.ConfigureAnalyzerRequest, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        """Applies `--policy-pack-config`, which overrides all other configuration."""
        names = {number: name for name, number in _LEVELS.items()}
        configured = {rule: config for rule, config in request.policyConfig.items() if rule in BY_ID}
        options = {rule: json_format.MessageToDict(config.properties) for rule, config in configured.items()}
        try:
            settings = PoliciesSettings.model_validate(
                {
                    "rules": {
                        rule: names.get(each.enforcementLevel, Level.MANDATORY) for rule, each in configured.items()
                    },
                    "options": {rule: each for rule, each in options.items() if each},
                }
            )
        except ValidationError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, " ".join(str(error).split()))
        self._use(self._configuration.with_stack(self._stack, settings))
        return empty_pb2.Empty()

    def Remediate(  # noqa: N802
        self, request: analyzer_pb2.AnalyzeRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.RemediateResponse:
        """Applies remedies to a resource before it is judged, of the rules at level `remediate`."""
        response, properties = analyzer_pb2.RemediateResponse(), request.properties
        if not self._judge.mends:
            return response
        owner = judged_object(request.type, properties, request.urn, request.options.protect)
        for rule, changes in self._judge.changes(owner) if owner else ():
            properties = mended(properties, changes)
            response.remediations.add(
                policyName=rule.id, policyPackName=NAME, description=rule.mends, properties=properties
            )
        return response

    def Analyze(  # noqa: N802
        self, request: analyzer_pb2.AnalyzeRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzeResponse:
        """Judges the inputs of a resource before it is created."""
        owner = judged_object(request.type, request.properties, request.urn, request.options.protect)
        self._objects[request.urn] = owner
        findings = list(self._judge.of_object(owner)) if owner else []
        self._findings[request.urn] = findings
        return analyzer_pb2.AnalyzeResponse(diagnostics=_diagnostics(findings))

    def AnalyzeStack(  # noqa: N802
        self, request: analyzer_pb2.AnalyzeStackRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzeResponse:
        """Judges all resources together, by their inputs if this run has them, and lists the exceptions."""
        for each in request.resources:
            if each.urn not in self._objects:
                self._objects[each.urn] = judged_object(each.type, each.properties, each.urn, each.options.protect)
        objects = (self._objects[each.urn] for each in request.resources)
        stack = Stack.of_all((each for each in objects if each), part=self._part)
        findings = list(self._judge.of_stack(stack))
        before = itertools.chain.from_iterable(self._findings.values())
        exceptions = self._configuration.environment(self._stack).exceptions
        report = Report((*before, *findings), len(stack.objects), exceptions)
        return analyzer_pb2.AnalyzeResponse(diagnostics=[*_diagnostics(findings), *_exceptions(report)])

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:  # noqa: N802
        """No call takes long enough to be interrupted."""
        return empty_pb2.Empty()

    def _set_stack(self, stack: str, config: Mapping[str, str]) -> None:
        # The configuration of an environment applies to all its stacks.
        self._stack, self._part = environment_of(stack), group_of(stack) is not None
        self._use(self._pack_configuration.with_stack(self._stack, of_config(config)))

    def _use(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._judge = Judge(configuration, self._stack)


def _policy(rule: Rule, level: Level) -> analyzer_pb2.PolicyInfo:
    properties = struct_pb2.Struct()
    properties.update(rule.options.model_json_schema().get("properties", {}))
    return analyzer_pb2.PolicyInfo(
        name=rule.id,
        displayName=rule.id,
        description=rule.what,
        message=f"{rule.what} {rule.why}",
        enforcementLevel=_LEVELS[level],
        configSchema=analyzer_pb2.PolicyConfigSchema(properties=properties),
        severity=_SEVERITIES[rule.severity],
        remediation_steps=rule.fix,
        tags=[rule.family],
    )


def _diagnostics(findings: Iterable[Finding]) -> Iterator[analyzer_pb2.AnalyzeDiagnostic]:
    """One diagnostic for equal violations in several places of an object, and one for each unknown value."""
    alike: dict[tuple[Object, str, str], list[Finding]] = defaultdict(list)
    unknown: dict[str, list[Finding]] = defaultdict(list)
    for each in findings:
        if not each.known:
            unknown[each.place].append(each)
        elif each.exception is None:
            alike[each.owner, each.rule.id, each.message].append(each)
    for first, *others in alike.values():
        place = f"{first.place} and {len(others)} more" if others else first.place
        ended = f" Its exception ended on {first.expired.expires}." if first.expired else ""
        yield _diagnostic(
            first.rule, first.level, f"{place}: {first.message}. {first.rule.fix}{ended}", first.owner.source
        )
    for place, unknowns in unknown.items():
        first, rules = unknowns[0], ", ".join(dict.fromkeys(each.rule.id for each in unknowns))
        yield _diagnostic(first.rule, Level.ADVISORY, f"{place}: {first.message}: {rules}", first.owner.source)


def _exceptions(report: Report) -> Iterator[analyzer_pb2.AnalyzeDiagnostic]:
    for each in report.exceptions:
        found = f", {report.used(each)} found" if each.holds(report.today) else ""
        state = f"{each.term(report.today)}{found}"
        text = f"exception for {each.object}, {state}: {each.reason} ({each.owner})"
        yield _diagnostic(BY_ID[each.rule], Level.ADVISORY, text, "")


def _diagnostic(rule: Rule, level: Level, text: str, urn: str) -> analyzer_pb2.AnalyzeDiagnostic:
    return analyzer_pb2.AnalyzeDiagnostic(
        policyName=rule.id,
        policyPackName=NAME,
        description=rule.what,
        message=f"{rule.what}\n{text}",
        enforcementLevel=_LEVELS[level],
        severity=_SEVERITIES[rule.severity],
        urn=urn,
    )


def main() -> None:
    """Serve one engine until it ends this process. Prints the port, and nothing else."""
    try:
        pack = Pack(
            of_pack(),
            os.environ.get("PULUMI_STACK", ""),
            json.loads(os.environ.get("PULUMI_CONFIG") or "{}"),
        )
    except ConfigurationError as error:
        sys.exit(str(error))
    server = grpc.server(
        ThreadPoolExecutor(max_workers=4),
        options=[("grpc.max_receive_message_length", _LARGEST), ("grpc.max_send_message_length", _LARGEST)],
    )
    analyzer_pb2_grpc.add_AnalyzerServicer_to_server(pack, server)
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    try:
        server.wait_for_termination()
    except KeyboardInterrupt:
        server.stop(grace=None)
