"""The files with which a Prometheus reads the metrics of a stack's clusters on Cloudera ML, and raises alerts."""

from pathlib import Path

from components.cml.authorities import certificates
from components.cml.manifests import head_url, nodes
from components.monitoring.cml import AUTHORITY, OnCml, key_file, scrape_file
from components.monitoring.manifests import RULES_FILE, SCRAPE_FILE, rules_file
from components.monitoring.settings import MonitoringSettings
from core.stack_file import stack_name
from core.types import seconds
from stacks.commands.cml.clusters import CmlCluster
from stacks.commands.recover.cli import Cli
from stacks.commands.status.targets import NoSuchTargetError
from stacks.load import load
from stacks.objects.monitoring import monitored


def write(stack_file: Path, folder: Path, pulumi: Cli | None = None) -> list[str]:
    """Writes them. Returns the names of the clusters, those that the stack file does not suspend. `pulumi`: as of
    CmlCluster.

    Raises StackFileError if the stack file is not valid, NoSuchTargetError if it has no such cluster, ValueError if
    `caFile` has no certificate, OSError, NotStartedError if a cluster was never made, and PulumiError if the state
    cannot be read.
    """
    stack, name = load(stack_file), stack_name(stack_file)
    clusters = [each for each in stack.cml.clusters if not each.suspend] if stack.cml else []
    if stack.cml is None or not clusters:
        raise NoSuchTargetError(f"{stack_file} has no Ray clusters on Cloudera ML that run: add them to cml.clusters")
    settings, authority = stack.monitoring or MonitoringSettings(), stack.cml.ca_file
    keys = {each.name: CmlCluster(stack_file, each.name, pulumi, stack).metrics_key() for each in clusters}
    folder.mkdir(parents=True, exist_ok=True)
    for cluster, key in keys.items():
        file = folder / key_file(cluster)
        file.touch(0o600)
        file.write_text(key)
    if authority:
        (folder / AUTHORITY).write_text(certificates(authority))
    scraped = (
        OnCml(
            each.name,
            each.project,
            head_url(nodes(stack.cml, each, name)).removeprefix("https://"),
            authority is not None,
        )
        for each in clusters
    )
    (folder / SCRAPE_FILE).write_text(scrape_file(scraped, seconds(settings.interval)))
    (folder / RULES_FILE).write_text(rules_file(settings, monitored(stack)))
    return list(keys)
