"""A RayService's spec: its cluster, its upgrades and its Serve config (validation.go: ValidateRayServiceSpec)."""

from core.body import Body
from kuberay import features, ray_cluster
from kuberay.formats import duration, integer, is_mapping
from kuberay.rules import Cluster, Found, problem

TIMEOUT_ANNOTATION = "ray.io/initializing-timeout"

INCREMENTAL = "NewClusterWithIncrementalUpgrade"

UPGRADES = (INCREMENTAL, "NewCluster", "None")

_GATE = "RayServiceIncrementalUpgrade"


def check(body: Body, cluster: Cluster) -> Found:
    """All rules on a RayService; `cluster` is its rayClusterConfig."""
    spec = body["spec"]
    yield from features.check_no_kubernetes_tokens(cluster, "RayService")
    yield from ray_cluster.check(cluster)
    yield from ray_cluster.owned(cluster, "RayService")
    yield from _initializing_timeout(body["metadata"].get("annotations", {}).get(TIMEOUT_ANNOTATION, ""))
    name = cluster.head.get("headService", {}).get("metadata", {}).get("name")
    if name:
        path = (*cluster.path, "headGroupSpec", "headService", "metadata", "name")
        message = f"the head Service of a RayService gets its name from KubeRay: remove {name!r}"
        yield problem("service-head-service", path, name, message)
    yield from _upgrade(spec, cluster)
    if not is_mapping(spec.get("serveConfigV2", "")):
        message = "this is not a YAML mapping: write a Serve config with applications"
        yield problem("service-serve-config", ("spec", "serveConfigV2"), spec["serveConfigV2"], message)
    if "serveService" not in spec:
        yield from ray_cluster.serve_port(cluster)


def _initializing_timeout(text: str) -> Found:
    """validateInitializingTimeout: a duration, or a number of seconds."""
    if not text:
        return
    length = duration(text)
    if length is None:
        length = integer(text)
    if length is None or length <= 0:
        message = f"{text!r} is not a time of more than 0: write for example 30m, 1h or 1800"
        yield problem("initializing-timeout", ("metadata", "annotations", TIMEOUT_ANNOTATION), text, message)


def _upgrade(spec: Body, cluster: Cluster) -> Found:
    strategy = spec.get("upgradeStrategy")
    if strategy is None:
        return
    strategy_type, at, gate = strategy.get("type"), ("spec", "upgradeStrategy"), cluster.operator.enabled(_GATE)
    if strategy_type is not None and strategy_type not in UPGRADES:
        message = f"{strategy_type!r} is not an upgrade type: use one of {', '.join(UPGRADES)}"
        yield problem("service-upgrade-strategy", (*at, "type"), strategy_type, message)
    # KubeRay 1.7 takes a strategy without a type.
    if strategy_type is None and gate and not cluster.operator.since("1.7"):
        message = f"with the feature gate {_GATE} the operator needs the type: use one of {', '.join(UPGRADES)}"
        yield problem("service-upgrade-strategy", (*at, "type"), None, message)
    if strategy_type == INCREMENTAL and gate:
        yield from _incremental(strategy.get("clusterUpgradeOptions"), cluster)
    elif strategy_type == INCREMENTAL:
        message = f"{INCREMENTAL} needs the operator's feature gate {_GATE}: enable it, or use NewCluster"
        yield problem("incremental-feature-gate", (*at, "type"), strategy_type, message)


def _incremental(options: Body | None, cluster: Cluster) -> Found:
    """ValidateClusterUpgradeOptions."""
    rule, at = "service-incremental-upgrade", ("spec", "upgradeStrategy", "clusterUpgradeOptions")
    if not cluster.autoscaling:
        path = (*cluster.path, "enableInTreeAutoscaling")
        message = f"{INCREMENTAL} moves load as the autoscaler adds workers: set enableInTreeAutoscaling to true"
        yield problem(rule, path, cluster.spec.get("enableInTreeAutoscaling"), message)
    if options is None:
        message = (
            f"{INCREMENTAL} needs stepSizePercent, intervalSeconds and gatewayClassName: add clusterUpgradeOptions"
        )
        yield problem(rule, at, None, message)
        return
    for field in ("maxSurgePercent", "stepSizePercent"):
        if not 0 <= options[field] <= 100:
            yield problem(rule, (*at, field), options[field], f"{field} is {options[field]}: give 0 to 100")
    step, surge = options["stepSizePercent"], options["maxSurgePercent"]
    if cluster.operator.since("1.7") and 0 <= surge < step <= 100:
        message = f"stepSizePercent {step} is more than maxSurgePercent {surge}: lower it, or raise maxSurgePercent"
        yield problem(rule, (*at, "stepSizePercent"), step, message)
    if options["intervalSeconds"] <= 0:
        message = f"intervalSeconds is {options['intervalSeconds']}: give 1 or more"
        yield problem(rule, (*at, "intervalSeconds"), options["intervalSeconds"], message)
    if not options["gatewayClassName"]:
        message = "gatewayClassName is empty: name a GatewayClass of the cluster"
        yield problem(rule, (*at, "gatewayClassName"), "", message)
