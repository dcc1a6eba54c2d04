"""The policy pack, as Pulumi's engine asks it (proto/pulumi/analyzer.proto in pulumi/pulumi).

It speaks the protocol itself: Pulumi's SDK for policies reads every resource once for each rule, the megabytes of
KubeRay's definitions among them, takes the marks off secrets, and ends a rule at the first value that is not known.
"""

import itertools
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import grpc
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc, plugin_pb2
from pydantic import ValidationError

from .configuration import FILE, Configuration, ConfigurationError, Environment, Level, level, load
from .decode import kubernetes_object
from .judge import Finding, Judge, Report
from .rule import Rule, Severity
from .rules import BY_ID, RULES
from .walk import Object, Stack

NAME = "ray-platform-policies"

CONFIGURATION = "RAY_PLATFORM_POLICIES"
"""Environment variable with the path of another configuration than the pack's own."""

_LARGEST = 400 * 1024 * 1024
"""Bytes of a message, as in the engine (pulumi sdk/go/common/util/rpcutil/serve.go)."""

_LEVELS = {
    Level.ADVISORY: analyzer_pb2.ADVISORY,
    Level.MANDATORY: analyzer_pb2.MANDATORY,
    Level.DISABLED: analyzer_pb2.DISABLED,
}
_SEVERITIES = {
    Severity.LOW: analyzer_pb2.POLICY_SEVERITY_LOW,
    Severity.MEDIUM: analyzer_pb2.POLICY_SEVERITY_MEDIUM,
    Severity.HIGH: analyzer_pb2.POLICY_SEVERITY_HIGH,
    Severity.CRITICAL: analyzer_pb2.POLICY_SEVERITY_CRITICAL,
}


class Pack(analyzer_pb2_grpc.AnalyzerServicer):
    """Judges the resources of one stack: each before it is made, and all of them at the end."""

    def __init__(self, configuration: Configuration, stack: str) -> None:
        """`stack`: name of the stack, which says what rules weigh; the engine may tell it later."""
        self._said = configuration
        self._stack = stack
        self._judge = Judge(configuration, stack)
        self._objects: dict[str, Object | None] = {}
        self._findings: dict[str, list[Finding]] = {}

    def Handshake(  # noqa: N802 (gRPC prescribes the names of methods)
        self, request: analyzer_pb2.AnalyzerHandshakeRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzerHandshakeResponse:
        """Nothing is asked of the engine."""
        return analyzer_pb2.AnalyzerHandshakeResponse()

    def ConfigureStack(  # noqa: N802
        self, request: analyzer_pb2.AnalyzerStackConfigureRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzerStackConfigureResponse:
        """Takes the stack's name."""
        self._stack = request.stack
        self._judge = Judge(self._said, self._stack)
        return analyzer_pb2.AnalyzerStackConfigureResponse()

    def GetPluginInfo(  # noqa: N802
        self, request: empty_pb2.Empty, context: grpc.ServicerContext
    ) -> plugin_pb2.PluginInfo:
        """The version of the SDK whose protocol this is."""
        return plugin_pb2.PluginInfo(version=version("pulumi"))

    def GetAnalyzerInfo(  # noqa: N802
        self, request: empty_pb2.Empty, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzerInfo:
        """All rules, with what they weigh in this stack."""
        environment = self._said.environment(self._stack)
        return analyzer_pb2.AnalyzerInfo(
            name=NAME,
            supportsConfig=True,
            policies=[_policy(rule, level(rule, environment)) for rule in RULES],
        )

    def Configure(  # noqa: N802
        self, request: analyzer_pb2.ConfigureAnalyzerRequest, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        """Takes what `--policy-pack-config` says over what the pack's configuration says."""
        names = {number: name for name, number in _LEVELS.items()}
        said = {rule: config for rule, config in request.policyConfig.items() if rule in BY_ID}
        weights = {rule: names.get(config.enforcementLevel, Level.MANDATORY) for rule, config in said.items()}
        options = {rule: json_format.MessageToDict(config.properties) for rule, config in said.items()}
        merged = self._said.model_copy(
            update={
                "environments": {
                    self._stack: Environment(level=self._said.environment(self._stack).level, rules=weights)
                },
                "options": {**self._said.options, **{rule: each for rule, each in options.items() if each}},
            }
        )
        try:
            self._judge = Judge(merged, self._stack)
        except ValidationError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, " ".join(str(error).split()))
        return empty_pb2.Empty()

    def Analyze(  # noqa: N802
        self, request: analyzer_pb2.AnalyzeRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzeResponse:
        """Judges a resource before it is made, by its inputs."""
        owner = kubernetes_object(request.type, request.properties, request.urn, request.options.protect)
        self._objects[request.urn] = owner
        findings = list(self._judge.of_object(owner)) if owner else []
        self._findings[request.urn] = findings
        return analyzer_pb2.AnalyzeResponse(diagnostics=_diagnostics(findings))

    def AnalyzeStack(  # noqa: N802
        self, request: analyzer_pb2.AnalyzeStackRequest, context: grpc.ServicerContext
    ) -> analyzer_pb2.AnalyzeResponse:
        """Judges all resources together, by their inputs where this run has them; and lists the exceptions."""
        for each in request.resources:
            if each.urn not in self._objects:
                self._objects[each.urn] = kubernetes_object(each.type, each.properties, each.urn, each.options.protect)
        there = (self._objects[each.urn] for each in request.resources)
        stack = Stack(tuple(each for each in there if each))
        findings = list(self._judge.of_stack(stack))
        before = itertools.chain.from_iterable(self._findings.values())
        report = Report((*before, *findings), len(stack.objects), self._said.exceptions)
        return analyzer_pb2.AnalyzeResponse(diagnostics=[*_diagnostics(findings), *_exceptions(report)])

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:  # noqa: N802
        """Nothing takes long enough to be interrupted."""
        return empty_pb2.Empty()


def _policy(rule: Rule, weight: Level) -> analyzer_pb2.PolicyInfo:
    properties = struct_pb2.Struct()
    properties.update(rule.options.model_json_schema().get("properties", {}))
    return analyzer_pb2.PolicyInfo(
        name=rule.id,
        displayName=rule.id,
        description=rule.what,
        message=f"{rule.what} {rule.why}",
        enforcementLevel=_LEVELS[weight],
        configSchema=analyzer_pb2.PolicyConfigSchema(properties=properties),
        severity=_SEVERITIES[rule.severity],
        remediation_steps=rule.fix,
        tags=[rule.family],
    )


def _diagnostics(findings: Iterable[Finding]) -> Iterator[analyzer_pb2.AnalyzeDiagnostic]:
    unknown: dict[str, list[Finding]] = defaultdict(list)
    for each in findings:
        if not each.known:
            unknown[each.place].append(each)
        elif each.exception is None:
            ended = f" Its exception ended on {each.expired.expires}." if each.expired else ""
            text = f"{each.place}: {each.message}. {each.rule.fix}{ended}"
            yield _diagnostic(each.rule, each.level, text, each.owner.source)
    for place, those in unknown.items():
        first, rules = those[0], ", ".join(dict.fromkeys(each.rule.id for each in those))
        yield _diagnostic(first.rule, Level.ADVISORY, f"{place}: {first.message}: {rules}", first.owner.source)


def _exceptions(report: Report) -> Iterator[analyzer_pb2.AnalyzeDiagnostic]:
    for each in report.exceptions:
        found = f", {report.used(each)} found" if each.holds(report.today) else ""
        state = f"{each.term(report.today)}{found}"
        text = f"exception for {each.object}, {state}: {each.reason} ({each.owner})"
        yield _diagnostic(BY_ID[each.rule], Level.ADVISORY, text, "")


def _diagnostic(rule: Rule, weight: Level, text: str, urn: str) -> analyzer_pb2.AnalyzeDiagnostic:
    return analyzer_pb2.AnalyzeDiagnostic(
        policyName=rule.id,
        policyPackName=NAME,
        description=rule.what,
        message=f"{rule.what}\n{text}",
        enforcementLevel=_LEVELS[weight],
        severity=_SEVERITIES[rule.severity],
        urn=urn,
    )


def main() -> None:
    """Serve one engine until it ends this process. Prints the port, and nothing else."""
    try:
        pack = Pack(load(Path(os.environ.get(CONFIGURATION) or FILE)), os.environ.get("PULUMI_STACK", ""))
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
