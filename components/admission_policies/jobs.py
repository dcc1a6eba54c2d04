"""The rules about RayJobs and CronJobs, in CEL (policies/rules/jobs.py, policies/rules/queues.py)."""

from core.pod_templates import RAY

from .rule import AdmissionRule, Options, of_jobs

_ENDS = "job.?shutdownAfterJobFinishes.orValue(false) == true"
_ON_ANOTHER = "job.?clusterSelector.hasValue()"
_INTERACTIVE = "job.?submissionMode.orValue('') == 'InteractiveMode'"
_OF_KUEUE = "object.metadata.?labels[?'kueue.x-k8s.io/queue-name'].hasValue()"
_OF_VOLCANO = "object.metadata.?labels[?'volcano.sh/queue-name'].hasValue()"


def _time_to_live(options: Options) -> str:
    return (
        f"{_ON_ANOTHER} || ({_ENDS} || job.?deletionStrategy.hasValue())"
        f" && job.?ttlSecondsAfterFinished.orValue(0) <= {options['seconds']}"
    )


RULES: tuple[AdmissionRule, ...] = (
    of_jobs("ray-job-ttl", _time_to_live),
    of_jobs("ray-job-deletion", f"!(job.?deletionStrategy.?deletionRules.hasValue() && {_ENDS})"),
    of_jobs(
        "ray-job-has-cluster",
        f"{_ON_ANOTHER} ? job.clusterSelector[?'ray.io/cluster'].orValue('') != '' : job.?rayClusterSpec.hasValue()",
    ),
    of_jobs(
        "ray-job-entrypoint",
        f"{_INTERACTIVE} || job.?entrypoint.orValue('') != ''"
        " || job.?submitterPodTemplate.?spec.?containers[?0].?command.hasValue()",
    ),
    of_jobs("ray-job-suspend", f"job.?suspend.orValue(false) != true || {_ENDS} && !{_ON_ANOTHER}"),
    of_jobs(
        "ray-job-backoff",
        f"job.?backoffLimit.orValue(0) == 0 || job.backoffLimit > 0 && !({_INTERACTIVE}) && !{_ON_ANOTHER}",
    ),
    of_jobs(
        "job-restart",
        "job.?submitterPodTemplate.?spec.?restartPolicy.orValue('Never') in ['Never', 'OnFailure']",
    ),
    AdmissionRule(
        "job-cron-concurrency",
        (("batch", "CronJob"),),
        "object.spec.?concurrencyPolicy.orValue('') in ['Forbid', 'Replace']",
    ),
    AdmissionRule("ray-one-scheduler", ((RAY, "RayCluster"), (RAY, "RayJob")), f"!({_OF_KUEUE} && {_OF_VOLCANO})"),
    AdmissionRule(
        "ray-kueue-job-ends",
        ((RAY, "RayJob"),),
        f"!{_OF_KUEUE} || object.spec.?shutdownAfterJobFinishes.orValue(false) == true",
    ),
)
