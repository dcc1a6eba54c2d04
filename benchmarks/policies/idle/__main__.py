"""A policy pack that reports nothing, to measure the time of the engine itself."""

from concurrent.futures import ThreadPoolExecutor

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc, plugin_pb2

ANSWERS = {
    "Handshake": analyzer_pb2.AnalyzerHandshakeResponse(),
    "ConfigureStack": analyzer_pb2.AnalyzerStackConfigureResponse(),
    "GetPluginInfo": plugin_pb2.PluginInfo(),
    "GetAnalyzerInfo": analyzer_pb2.AnalyzerInfo(
        name="idle",
        supportsConfig=True,
        policies=[analyzer_pb2.PolicyInfo(name="idle", enforcementLevel=analyzer_pb2.ADVISORY)],
    ),
    "Configure": empty_pb2.Empty(),
    "Remediate": analyzer_pb2.RemediateResponse(),
    "Analyze": analyzer_pb2.AnalyzeResponse(),
    "AnalyzeStack": analyzer_pb2.AnalyzeResponse(),
    "Cancel": empty_pb2.Empty(),
}

servicer = analyzer_pb2_grpc.AnalyzerServicer()
for method, answer in ANSWERS.items():
    setattr(servicer, method, lambda request, context, answer=answer: answer)
server = grpc.server(ThreadPoolExecutor(max_workers=4), options=[("grpc.max_receive_message_length", -1)])
analyzer_pb2_grpc.add_AnalyzerServicer_to_server(servicer, server)
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
