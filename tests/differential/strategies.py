"""Generated manifests: like those of people, with a few mistakes, and wild ones."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from core.body import Body
from kuberay import OperatorContext
from tests.differential.values import CLUSTER, JOB, METADATA, SCHEDULES, SERVICE, Values
from tests.unit.kuberay.manifests import GONE, SPECS, edited, manifest

JUNK: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 2**31, 2**63 - 1, 0.5, "", "text", "1", [], {}, [None], {"a": None}, [{}],
                     ["a", 1], {"a": {}}]),
    st.just(GONE),
)  # fmt: skip
"""Values for any place."""

CONTEXTS = st.builds(
    OperatorContext,
    batch_scheduler=st.sampled_from([None, None, None, "volcano", "yunikorn", "kai-scheduler", "scheduler-plugins"]),
    feature_gates=st.fixed_dictionaries(
        {"RayCronJob": st.just(True)},
        optional={"RayJobDeletionPolicy": st.booleans(), "RayServiceIncrementalUpgrade": st.booleans()},
    ),
)

KINDS = st.sampled_from(sorted(SPECS))


def _below(prefix: str, values: Values) -> Values:
    return {f"{prefix} {place}": each for place, each in values.items()}


FIELDS: Mapping[str, Values] = {
    "RayCluster": {**_below("metadata", METADATA), **_below("spec", CLUSTER)},
    "RayJob": {**_below("metadata", METADATA), **_below("spec rayClusterSpec", CLUSTER), **_below("spec", JOB)},
    "RayService": {
        **_below("metadata", METADATA), **_below("spec rayClusterConfig", CLUSTER), **_below("spec", SERVICE)
    },
    "RayCronJob": {
        **_below("metadata", METADATA),
        **_below("spec jobTemplate rayClusterSpec", CLUSTER),
        **_below("spec jobTemplate", JOB),
        "spec schedule": SCHEDULES,
    },
}  # fmt: skip
"""The fields of each kind that rules read."""


@st.composite
def with_fields(draw: st.DrawFn, fewest: int, most: int) -> tuple[Body, OperatorContext]:
    """A manifest of any kind with values in this number of fields."""
    kind = draw(KINDS)
    fields = FIELDS[kind]
    places = draw(st.lists(st.sampled_from(list(fields)), min_size=fewest, max_size=most, unique=True))
    return _with_values(draw, kind, places), draw(CONTEXTS)


THEMES = (
    ("utoscal", "restartPolicy", "env", "suspend", "idleTimeout"),
    ("gcs", "env", "headGroupSpec rayStartParams", "ray.io/ft", "external-storage", "headGroupSpec resources"),
    ("deletion", "shutdown", "clusterSelector", "utoscal", "ttl"),
    ("submi", "clusterSelector", "backoff", "spec metadata", "rayVersion", "entrypoint", "headGroupSpec template spec"),
    ("pgrade", "utoscal", "headService", "serve", "ports"),
    ("auth", "rayVersion"),
    ("enableInTree", "autoscalerOptions version", "restartPolicy"),
    ("deletionRules",),
    ("submissionMode", "entrypointResources"),
    (" metadata", "rayVersion"),
    ("metadata",),
    ("workerGroupSpecs",),
    ("volcano", "rayClusterSpec", "clusterSelector"),
    ("schedule", "YAML", "serveConfig", "Deadline"),
)
"""Parts of the names of fields that rules read together."""


@st.composite
def on_one_theme(draw: st.DrawFn) -> tuple[Body, OperatorContext]:
    """A manifest with several fields of one theme."""
    kind = draw(KINDS)
    theme = draw(st.sampled_from(THEMES))
    fields = {place: each for place, each in FIELDS[kind].items() if any(part in place for part in theme)}
    if not fields:
        return manifest(kind), draw(CONTEXTS)
    places = draw(st.lists(st.sampled_from(list(fields)), min_size=min(2, len(fields)), max_size=6, unique=True))
    return _with_values(draw, kind, places), draw(CONTEXTS)


def _with_values(draw: st.DrawFn, kind: str, places: list[str]) -> Body:
    # Outer fields first, so that the values of inner ones stay.
    ordered = sorted(places, key=lambda place: (place.count(" "), place))
    return _edited(manifest(kind), {place: draw(FIELDS[kind][place]) for place in ordered})


@st.composite
def wild(draw: st.DrawFn) -> tuple[Body, OperatorContext]:
    """A manifest with junk in existing places, and misspelt keys."""
    body, context = draw(with_fields(0, 3))
    for _ in range(draw(st.integers(1, 3))):
        places = [place for place in _places(body) if place not in ("apiVersion", "kind")]
        place = draw(st.sampled_from(places or ["spec"]))
        if draw(st.booleans()):
            body = _edited(body, {place: draw(JUNK)})
        else:
            parent = place.rpartition(" ")[0]
            key = draw(st.sampled_from(["colour", "Spec", "nmae", "replica", "containers", "template", "labels"]))
            body = _edited(body, {f"{parent} {key}".strip(): draw(JUNK)})
    return body, context


def _edited(body: Body, edits: Mapping[str, Any]) -> Body:
    """The manifest with all possible edits; one below a removed value is not possible."""
    for place, value in edits.items():
        try:
            body = edited(body, {place: value})
        except (TypeError, AttributeError, IndexError, KeyError):
            continue
    return body


def _places(value: Any, at: str = "") -> list[str]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = []
    for key, each in items:
        # A place consists of keys separated by blanks.
        if str(key) and " " not in str(key):
            place = f"{at} {key}".strip()
            found += [place, *_places(each, place)]
    return found
