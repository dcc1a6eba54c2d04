"""Settings of a job template."""

import functools
import itertools
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict, WithJsonSchema

from components.job_template.sizes import SizeSettings, in_size, problems_of_groups, problems_of_size, with_size
from components.ray_cluster.settings import ClusterTemplateSettings
from components.ray_job.rules import problems_of
from components.ray_job.settings import JobSettings, RayJobSettings
from core.problems import Problem, Problems, dotted, raise_problems
from core.types import DnsLabel, NonEmptyText, Settings, dns_1035_label
from kuberay.cron import cron_job_fault, is_zone_of_cron_job
from kuberay.formats import LONGEST
from kuberay.runtime_env import RuntimeEnvSettings

TemplateName = Annotated[str, dns_1035_label(LONGEST["RayCronJob"])]
"""Leaves room for the suffix in the names of its runs, as KubeRay does for those of a RayCronJob."""

WORD = "[A-Za-z0-9_@%+=:,./-]+"
"""An argument: characters that no shell interprets (Python's shlex.quote leaves the same ones alone). Quotes would not
help: in K8sJobMode and SidecarMode `ray job submit` removes them before a second shell runs the entrypoint (Ray:
dashboard/modules/job/cli.py, list2cmdline; job_supervisor.py, shell=True)."""

NOT_A_WORD = (
    "is not an argument: a shell may interpret it. Use letters, digits and _ @ % + = : , . / -, and put anything else "
    "into a file that the job reads"
)
"""For messages."""

_OPTION = re.compile("--?[A-Za-z0-9][A-Za-z0-9_-]*")


def _option(text: str) -> str:
    if not _OPTION.fullmatch(text):
        raise ValueError(f"{text!r} is not an option of a command: write it as --epochs or -e, without a value")
    return text


Option = Annotated[str, AfterValidator(_option), WithJsonSchema({"type": "string", "pattern": f"^{_OPTION.pattern}$"})]


def _fires(schedule: str) -> str:
    if fault := cron_job_fault(schedule):
        raise ValueError(
            f"{schedule!r} is not a schedule of a Kubernetes CronJob, {fault}: write for example 0 3 * * 1-5"
        )
    return schedule


def _zone(name: str) -> str:
    if not is_zone_of_cron_job(name):
        raise ValueError(f"{name!r} is not a time zone: write a name such as Europe/Berlin, or Etc/UTC")
    return name


def _word(argument: str) -> str:
    if not re.fullmatch(WORD, argument):
        raise ValueError(f"{argument!r} {NOT_A_WORD}")
    return argument


Limit = Annotated[int, Strict(), Field(ge=0, le=1000)]

CODE_FOLDER, CODE_FILE = "/ray-platform/code", "code.zip"
"""Where the pod that submits a run has the code that the run brings. It uploads the file to Ray, as `ray job submit`
does with each archive of its machine (ray/_private/runtime_env/working_dir.py: upload_working_dir_if_needed)."""


class CronSettings(Settings):
    """When a job template is run by itself. The keys are those of a Kubernetes CronJob, and apply to the runs that the
    schedule starts."""

    schedule: Annotated[str, AfterValidator(_fires)]
    """Minute, hour, day of the month, month and day of the week: `0 3 * * 1-5`."""

    time_zone: Annotated[str, AfterValidator(_zone)] | None = None
    """Time zone of the schedule, such as `Europe/Berlin`. Default: that of Kubernetes' controllers, which mostly is
    UTC."""

    concurrency_policy: Literal["Allow", "Forbid", "Replace"] = "Forbid"
    """If the last run has not ended at the time of the next. `Forbid`: the time is skipped. `Replace`: the last run is
    stopped and deleted. `Allow`: both run."""

    starting_deadline_seconds: Annotated[int, Strict(), Field(ge=10, le=2**31 - 1)] | None = None
    """How late a run may start, if Kubernetes could not start it in time. Default: Kubernetes' own, no limit."""

    successful_jobs_history_limit: Limit = 3
    """Number of succeeded runs that are kept, the newest. Older ones are deleted at the next time."""

    failed_jobs_history_limit: Limit = 1
    """Number of failed runs that are kept, the newest."""

    suspend: bool = False
    """True: no run is started. What runs continues."""

    arguments: tuple[Annotated[str, AfterValidator(_word)], ...] = ()
    """Arguments of each run."""

    size: str | None = None
    """Size of each run, one of the template's `sizes`. Default: its own cluster."""


class JobTemplateSettings(JobSettings):
    """A vetted job that the tenant's users run with arguments: `ray-platform run STACK NAME -- ARGUMENTS`.

    Each run is a RayJob of its own, and equals the template except for the arguments, which follow the entrypoint. The
    API server refuses every other. The keys are those of a job, except `externalCluster`, `runId`, `suspend`, `waitFor`
    and `waitTimeout`. Needs KubeRay 1.6.
    """

    name: TemplateName
    """Name of the template; its runs are named `<name>-xxxxx`. It must differ from those of the tenant's RayClusters
    and jobs."""

    entrypoint: NonEmptyText
    """The command that Ray runs. The arguments of a run follow it."""

    submission_mode: Literal["K8sJobMode", "HTTPMode", "SidecarMode"] = "K8sJobMode"
    """Who submits the job: as for a job."""

    options: tuple[Option, ...] | None = Field(default=None, max_length=100)
    """Options that a run may give, such as `--epochs`: each argument that begins with `-` must be one of these, up to a
    `=`. Default: any. An empty list: none."""

    sizes: dict[DnsLabel, SizeSettings] = Field(default_factory=dict)
    """Sizes that a run may have besides that of `cluster`, by name: `ray-platform run STACK NAME --size SIZE`. Each is
    `cluster` with other counts or resources of its workers. The API server refuses every other size. Default: all runs
    have `cluster` as it is."""

    cron: CronSettings | None = None
    """Runs the template on schedule, too. Default: only people run it."""

    local_code: bool = False
    """True: each run brings the code of a folder, `ray-platform run STACK NAME --working-dir FOLDER`, and nobody vets
    it. Users of the template then run any code with the account, Secrets, storage and network of its pods. Not with
    `cron`, `runtimeEnv.working_dir` and `HTTPMode` or `SidecarMode`."""

    @functools.cached_property
    def job(self) -> RayJobSettings:
        """The template as a RayJob of its name."""
        return self._job(self.cluster)

    @functools.cached_property
    def sized_jobs(self) -> Mapping[str, RayJobSettings]:
        """The same for each of its sizes."""
        own = self.cluster
        return {name: self._job(with_size(own, size)) for name, size in self.sizes.items()} if own else {}

    def no_such_size(self, size: str) -> str:
        """For messages."""
        if self.sizes:
            known = ", ".join(self.sizes)
            return f"job template {self.name} has no size {size!r}: use one of {known}, or leave it out"
        return f"job template {self.name} has no sizes: leave it out, or add sizes to the template"

    def of_size(self, size: str, problem: Problem) -> Problem:
        """A problem of the job of a size, at its place in these settings."""
        assert self.cluster
        within = in_size(self.cluster, self.sizes[size], problem.path)
        elsewhere = f"{dotted(problem.path)}: " if problem.path[1:] and not within else ""
        return replace(problem, path=("sizes", size, *within), message=f"{elsewhere}{problem.message}")

    def _job(self, cluster: ClusterTemplateSettings | None) -> RayJobSettings:
        own = {field: getattr(self, field) for field in JobSettings.model_fields} | {"cluster": cluster}
        given = self.model_fields_set - {"options", "cron", "local_code", "sizes"}
        if self.local_code:
            environment = self.runtime_env or RuntimeEnvSettings()
            own["runtime_env"] = environment.model_copy(update={"working_dir": f"{CODE_FOLDER}/{CODE_FILE}"})
            given |= {"runtime_env"}
        return RayJobSettings.model_construct(given, **own)


def _valid(template: JobTemplateSettings) -> JobTemplateSettings:
    of_code = list(_local_code(template))
    if problems := of_code or [*problems_of(template.job), *_arguments(template), *_any_program(template)]:
        raise Problems(problems)
    raise_problems(_sizes(template))
    return template


def _sizes(template: JobTemplateSettings) -> Iterator[Problem]:
    """The template itself is valid."""
    scheduled, cluster = template.cron.size if template.cron else None, template.cluster
    if scheduled is not None and scheduled not in template.sizes:
        yield Problem(("cron", "size"), scheduled, template.no_such_size(scheduled), "job-template-size")
    if cluster is None:
        if template.sizes:
            message = "a size changes the template's cluster, and it has none of its own: add cluster, or remove sizes"
            yield Problem(("sizes",), None, message, "job-template-size")
        return
    for name, size in template.sizes.items():
        longest = LONGEST["RayCronJob"] - len(template.name) - 1
        if len(name) > longest:
            message = f"is too long beside the template's name, which runs have before it: use {longest} characters"
            yield Problem(("sizes", name), None, f"{name!r} {message}", "job-template-size")
        elif of_size := list(problems_of_size(cluster, size)):
            yield from (each.below(("sizes", name)) for each in of_size)
        else:
            job = template.sized_jobs[name]
            assert job.cluster
            yield from (template.of_size(name, each) for each in (*problems_of_groups(job.cluster), *problems_of(job)))


def _local_code(template: JobTemplateSettings) -> Iterator[Problem]:
    if not template.local_code:
        return
    if template.submission_mode != "K8sJobMode":
        message = (
            f"the pod that submits a run uploads its code, and {template.submission_mode} has none: use K8sJobMode, or "
            "remove localCode"
        )
        yield Problem(("localCode",), True, message, "job-template-code")
    if template.runtime_env and template.runtime_env.others.get("working_dir") is not None:
        message = "each run brings its own folder, because localCode is true: remove one"
        yield Problem(("runtimeEnv", "working_dir"), None, message, "job-template-code")
    if template.cron:
        message = "a run on schedule has no folder to bring, which localCode requires: write a template for each"
        yield Problem(("cron",), None, message, "job-template-code")


def _arguments(template: JobTemplateSettings) -> Iterator[Problem]:
    for at, argument in enumerate(template.cron.arguments if template.cron else ()):
        option = argument.partition("=")[0]
        if template.options is not None and argument.startswith("-") and option not in template.options:
            message = f"{option} is not among the template's options: add it to options, or remove it here"
            yield Problem(("cron", "arguments", at), argument, message, "job-template-option")


_LAUNCHERS = re.compile(
    r"(python|pypy)[0-9.]*|(ba|da|z|k|fi)?sh|env|exec|nohup|setsid|nice|time|timeout|xargs|sudo|perl|ruby|node|java|php"
    r"|torchrun|deepspeed|mpirun|horovodrun|uvx?|pipx|run|launch|poetry|conda|accelerate|source|command|eval"
    r"|ipython3?|bpython|busybox|chrt|deno|doas|dumb-init|gdb|ionice|ltrace|npx|numactl|parallel|setarch|stdbuf"
    r"|strace|taskset|tini|unshare|streamlit|gunicorn|uvicorn|pytest|papermill|jupyter|[gnm]?awk|find|git|make"
    r"|pip[0-9.]*|sed|ssh|tar"
)
"""Commands that run the program which their first argument names, or which an argument may give. `uv run` and
`accelerate launch` are two words."""

_BARE = ("ray", "serve", "watch", "job", "submit", "install", "nbconvert")
"""Further ones, and second words; in a folder they may be programs of the image."""

_AMOUNT = re.compile(r"[0-9.]+[smhd]?")
"""What `timeout` and `nice` take before the program."""

_MODULES = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "runpy", "timeit", "pdb")
"""Modules of Python that do so."""


def _any_program(template: JobTemplateSettings) -> Iterator[Problem]:
    """A template without a program, so that a run's first argument is one: then its users run what they like."""
    try:
        words = shlex.split(template.entrypoint)
    except ValueError:  # its quotes are reported elsewhere
        return
    words = list(itertools.dropwhile(lambda word: re.match("[A-Za-z_][A-Za-z0-9_]*=", word), words))
    while words and (words[0] in _BARE or _LAUNCHERS.fullmatch(words[0].rpartition("/")[2])):
        words = words[1:]
        while words and (words[0].startswith("-") or "=" in words[0] or _AMOUNT.fullmatch(words[0])):
            option, *words = words
            if option in ("-m", "-c", "-e") and words:
                if option != "-m" or words[0] not in _MODULES:
                    return
                words = words[1:]
    if not words:
        message = (
            "names no program, so that the first argument of a run would be one, and its users could run any: write "
            "it, such as python train.py"
        )
        yield Problem(("entrypoint",), template.entrypoint, message, "job-template-program")


ValidJobTemplate = Annotated[JobTemplateSettings, AfterValidator(_valid)]
"""Settings of a job template without conflicts."""
