"""Admission policies, in CEL, for RayJobs of users who may not create RayClusters. Pure functions."""

from typing import Any

from components.access.cel import MAY_NOT_MAKE_ANY, RAY_CLUSTERS, policy, same_but
from components.access.neighbours import NO_CONTROLLER
from components.access.personas import RAY_GROUP, RAY_WRITE, RUN
from components.job_template.manifests import AUTHOR_ANNOTATION, LETTERS, OPTIONS_ANNOTATION, RANDOM, TEMPLATE_LABEL
from components.job_template.settings import WORD
from components.ray_cluster.manifests import API_VERSION as RAY_VERSION
from policies.cel import listed

Body = dict[str, Any]

CLUSTER_SELECTOR = "ray.io/cluster"
"""Key with which a RayJob names its RayCluster (constant.go: RayJobClusterSelectorKey)."""

_RAY_JOBS = f"authorizer.group('{RAY_GROUP}').resource('rayjobs')"
_RAY_JOB_TEMPLATES = f"authorizer.group('{RAY_GROUP}').resource('raycronjobs')"

_AUTHOR = f"object.metadata.?annotations[?'{AUTHOR_ANNOTATION}']"
"""CEL: who creates a RayJob, by its annotation."""


def jobs_on_usable_clusters() -> Body:
    """Users who may create RayJobs but not RayClusters must select a RayCluster that they may use, without pod
    templates.

    A RayJob can contain its own RayCluster and a pod template for its submitter. Their pods could use any account and
    any Secret of the namespace. In the name of somebody else only that user could delete it (own_jobs), and `runs`
    would show it as run by that user.
    """
    cluster = f"object.spec.clusterSelector['{CLUSTER_SELECTOR}']"
    return policy(
        ("rayjobs", "CREATE"),
        [MAY_NOT_MAKE_ANY],
        [
            _absent("rayClusterSpec"),
            _absent("submitterPodTemplate"),
            {
                "expression": f"object.spec.?clusterSelector[?'{CLUSTER_SELECTOR}'].hasValue()",
                "message": f"name the RayCluster that it runs on: clusterSelector: {{{CLUSTER_SELECTOR}: NAME}}",
            },
            {
                "expression": f"!object.spec.?clusterSelector[?'{CLUSTER_SELECTOR}'].hasValue() || "
                f"{RAY_CLUSTERS}.namespace(request.namespace).name({cluster}).check('{RAY_WRITE}').allowed()",
                "messageExpression": f"'you may not use RayCluster ' + {cluster} + ': the stack file does not name you "
                "among its users'",
                "message": "you may not use this RayCluster",
            },
            {
                "expression": f"{_AUTHOR}.orValue(request.userInfo.username) == request.userInfo.username",
                "message": f"annotation {AUTHOR_ANNOTATION} is the name of the user who creates it: leave it out",
            },
        ],
    )


def runs_of_templates() -> Body:
    """Users who may create RayJobs but not RayClusters run job templates as they are, with arguments and in their own
    name. The parameter is the RayCronJob that holds the template.
    """
    template = "params.spec.jobTemplate"
    arguments = f"object.spec.entrypoint.substring(size({template}.entrypoint))"
    options = f"params.metadata.?annotations[?'{OPTIONS_ANNOTATION}']"
    same = [
        *same_but("object.spec", template, listed(["entrypoint", "suspend"])),
        "object.metadata.labels == params.metadata.labels",
        *same_but(_annotations("object"), _annotations("params"), listed([AUTHOR_ANNOTATION])),
    ]
    rules = [
        (
            f"{_RAY_JOB_TEMPLATES}.namespace(request.namespace).name(params.metadata.name).check('{RUN}').allowed()",
            "you may not run this job template: the stack file does not name you among its users",
        ),
        *((each, "a run equals its template, labels and annotations included, except for arguments") for each in same),
        (
            f"object.metadata.name.matches('^' + params.metadata.name + '-[{LETTERS}]{{{RANDOM}}}$')",
            f"a run is named as its template, with a hyphen and {RANDOM} of {LETTERS}",
        ),
        (
            f"object.spec.entrypoint.startsWith({template}.entrypoint) && {arguments}.matches('^( {WORD})*$')",
            "a run has the entrypoint of its template, and then arguments without characters that a shell interprets: "
            "letters, digits and _ @ % + = : , . / -, each after one blank",
        ),
        (
            f"!{options}.hasValue() || {arguments}.split(' ').all(word, !word.startsWith('-')"
            f" || word.split('=')[0] in {options}.orValue('').split(' '))",
            f"the template has a list of options (annotation {OPTIONS_ANNOTATION}), and this run gives another",
        ),
        (
            f"{_AUTHOR}.orValue('') == request.userInfo.username",
            f"annotation {AUTHOR_ANNOTATION} of a run is the name of the user who creates it",
        ),
    ]
    spec = policy(
        ("rayjobs", "CREATE"),
        [MAY_NOT_MAKE_ANY],
        [{"expression": expression, "message": message} for expression, message in rules],
    )
    labelled = {"matchExpressions": [{"key": TEMPLATE_LABEL, "operator": "Exists"}]}
    return {
        **spec,
        "paramKind": {"apiVersion": RAY_VERSION, "kind": "RayCronJob"},
        # Until the API server knows the parameter's kind, it refuses all that the policy is for.
        "matchConstraints": {**spec["matchConstraints"], "objectSelector": labelled},
    }


def own_jobs() -> Body:
    """Users who may not create RayClusters delete runs of job templates that they created, and RayJobs on RayClusters
    that they may use, where they may stop any job.

    Others are Kubernetes' garbage collector, and its namespace controller, which may delete whole collections.
    """
    author = f"oldObject.metadata.?annotations[?'{AUTHOR_ANNOTATION}']"
    selected = f"oldObject.spec.?clusterSelector[?'{CLUSTER_SELECTOR}']"
    usable = f"{RAY_CLUSTERS}.namespace(request.namespace).name({selected}.orValue('')).check('{RAY_WRITE}').allowed()"
    collections = {
        "name": "may-not-delete-collections",
        "expression": f"!{_RAY_JOBS}.namespace(request.namespace).check('deletecollection').allowed()",
    }
    own = f"{author}.hasValue() ? {author}.orValue('') == request.userInfo.username"
    return policy(
        ("rayjobs", "DELETE"),
        [NO_CONTROLLER, MAY_NOT_MAKE_ANY, collections],
        [
            {
                "expression": f"{own} : {selected}.hasValue() && {usable}",
                "message": "this RayJob is not yours: you may delete runs of job templates that you created, and "
                "RayJobs on RayClusters that you may use",
            }
        ],
    )


def _annotations(of: str) -> str:
    """CEL: the annotations of an object."""
    return f"{of}.metadata.?annotations.orValue({{}})"


def _absent(field: str) -> Body:
    return {
        "expression": f"!has(object.spec.{field})",
        "message": f"{field} is for those who may make RayClusters: leave it out, name a RayCluster in clusterSelector",
    }
