"""What a person means by an amount, a time or a key that is written as elsewhere: `16GB`, `60`, `num_cpus`; and by a
misspelled name.

Each suggested amount and time is valid. Nothing is converted by itself: people decide.
"""

import difflib
import re
from collections.abc import Collection, Sequence
from decimal import Decimal

_NUMBER = r"(?P<whole>[0-9]{1,3}(?:_[0-9]{3}){1,2}|[0-9]{1,6})(?:[.,](?P<fraction>[0-9]{1,9}))?"
"""As many digits as any amount of a machine has: a suggestion is not larger than the maximum of Kubernetes."""

_AMOUNT = re.compile(rf"{_NUMBER}\s*(?P<unit>[A-Za-z]*)")

_PREFIXES = {"m": "Mi", "g": "Gi", "t": "Ti"}
_NAMES = {"mega": "Mi", "giga": "Gi", "tera": "Ti"}
_UNITS = {
    "": "",
    **{f"{short}{ending}": unit for short, unit in _PREFIXES.items() for ending in ("", "b", "i", "ib")},
    **{f"{name}byte{plural}": unit for name, unit in _NAMES.items() for plural in ("", "s")},
    **dict.fromkeys(("cpu", "cpus", "vcpu", "vcpus", "core", "cores"), ""),
    **dict.fromkeys(("millicpu", "millicpus", "millicore", "millicores", "mcpu"), "m"),
}
"""Units of amounts, in lower case, and what Kubernetes writes for them."""

MOST_GIBIBYTES = 8192
"""A number without a unit up to this one is taken for Gi, a larger one for Mi."""


def amount_meant(text: str) -> str | None:
    """The Kubernetes quantity that a text means: `16Gi` for `16GB`; None if that is not clear."""
    found = _AMOUNT.fullmatch(text.strip())
    unit = _UNITS.get(found["unit"].lower()) if found else None
    number = _plain(found) if found else None
    return f"{number}{unit}" if number and unit is not None else None


def memory_meant(text: str) -> str | None:
    """The same for an amount of bytes that is too small, since its unit is missing or wrong: `64Gi` for `64`."""
    found = _AMOUNT.fullmatch(text.strip())
    number = _plain(found) if found else None
    if found is None or number is None or found["unit"] not in ("", "m"):
        return None
    return f"{number}{'Mi' if found['unit'] or Decimal(number) > MOST_GIBIBYTES else 'Gi'}"


def _plain(found: re.Match[str]) -> str | None:
    """The number as Kubernetes writes it; None if it is zero, or if its comma may separate thousands."""
    whole, fraction = found["whole"].replace("_", ""), found["fraction"]
    if fraction and "," in found[0] and len(fraction) == 3:
        return None
    number = f"{whole}.{fraction}" if fraction else whole
    return number if Decimal(number) else None


_LENGTHS = {
    **dict.fromkeys(("", "s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 24 * 3600),
    **dict.fromkeys(("w", "week", "weeks"), 7 * 24 * 3600),
}
"""Units of times in seconds. A number without a unit is one of seconds."""

_PART = r"([0-9]{1,9}(?:[.,][0-9]{1,9})?)\s*([A-Za-z]*)"
_TIME = re.compile(rf"{_PART}(?:(?:\s*,\s*|\s+and\s+|\s+|(?<=[A-Za-z])){_PART}){{0,3}}")

_LONGEST = 2**31 - 1


def time_meant(text: str) -> str | None:
    """The duration that a text means, in whole seconds: `60s` for `60`, `24h` for `1 day`; None if it is unclear."""
    if not _TIME.fullmatch(text.strip()):
        return None
    parts = re.findall(_PART, text)
    # `1h30` may be minutes or seconds.
    if any(unit.lower() not in _LENGTHS or (not unit and len(parts) > 1) for _, unit in parts):
        return None
    length = sum((Decimal(number.replace(",", ".")) * _LENGTHS[unit.lower()] for number, unit in parts), Decimal(0))
    if not 0 < length <= _LONGEST or length != length.to_integral_value():
        return None
    whole = int(length)
    # As it is written, where that is a duration: 60 seconds are not one minute.
    units = (("h", 3600), ("m", 60)) if len(parts) > 1 or _LENGTHS[parts[0][1].lower()] > 1 else ()
    unit, size = next(((unit, size) for unit, size in units if whole % size == 0), ("s", 1))
    return f"{whole // size}{unit}"


_SAME = (
    "cpu cpus numcpus ncpus vcpu vcpus core cores cpucores cpurequest cpulimit requestcpu limitcpu",
    "memory mem ram rammemory memorylimit memoryrequest memorysize memorygb memorymb memorygib memorymib",
    "gpus gpu numgpus ngpus gpucount nvidiacomgpu nvidiagpu gpulimit gpurequest accelerators",
    "gpuProduct gputype gpumodel gpuname gpukind accelerator acceleratortype",
    "minReplicas minworkers min minimum minnodes minsize replicasmin",
    "maxReplicas maxworkers max maximum maxnodes maxsize replicasmax",
    "minWorkers minreplicas",
    "maxWorkers maxreplicas",
    "initialWorkers numworkers numnodes desiredworkers replicas",
    "count number size nodecount numnodes replicas",
    "replicas numreplicas replicacount instances desiredreplicas",
    "image container containerimage imagename repository dockerimage",
    "rayVersion version rayrelease",
    "version kuberayversion operatorversion chartversion appversion release tag",
    "imagePullSecrets pullsecrets imagepullsecret pullsecret registrysecret",
    "pullSecrets imagepullsecrets imagepullsecret",
    "podTemplate template podspec pod spec",
    "workers workergroup workergroupspecs workerspec worker nodes",
    "workerGroups workergroupspecs groups",
    "head headgroup headgroupspec headnode headspec",
    "serviceAccount serviceaccountname account",
    "priorityClass priorityclassname priority",
    "autoscaling enableintreeautoscaling autoscaler enableautoscaling",
    "idleTimeout idletimeoutseconds idletimeoutminutes scaledownafter scaledowndelay",
    "env envs environment environmentvariables envvars variables envfrom",
    "storageClassName storageclass class",
    "size capacity storage storagesize volumesize",
    "namespace ns targetnamespace namespacename",
    "name tenant team metadata",
    "tenants teams namespaces users projects",
    "users members people groups user",
    "drainTimeout drain draintime terminationgraceperiodseconds graceperiod",
    "admins owners administrators maintainers",
    "owner contact team",
    "quota resourcequota quotas hard",
    "limits limitrange limitranges",
    "pool nodepool nodegroup nodeselector",
    "groupName name",
    "pool name",
    "nodes nodepools pools",
    "secretName secret existingsecret secretref credentials",
    "address host url uri endpoint redisaddress",
    "sentinels sentinel hosts addresses",
    "schedule cron cronschedule crontab",
    "keep retention history keeplast",
    "faultTolerance gcsfaulttolerance gcsfaulttoleranceoptions ha highavailability",
    "rayStartParams startparams rayparams params",
    "context kubecontext kubeconfig cluster",
    "cidrs cidr ipblock ipblocks networks",
    "cidr cidrs ipblock",
    "runAsUser securitycontext user uid",
    "className ingressclassname ingressclass",
    "tlsSecretName tls secretname",
)
"""Keys of the stack file, each before words of Ray, Kubernetes and Helm for it: letters and digits, lower case."""

_MEANT: dict[str, list[str]] = {}
for _key, *_others in map(str.split, _SAME):
    for _word in _others:
        _MEANT.setdefault(_word, []).append(_key)

_AMOUNTS = ("resources", "requests", "limits", "resourcerequirements")


def keys_meant(key: str, known: Sequence[str]) -> tuple[str, ...]:
    """The known keys that another key means, by its letters or by what it is called elsewhere."""
    word = _letters(key)
    if same := [each for each in known if _letters(each) == word]:
        return (same[0],)
    if meant := [each for each in _MEANT.get(word, ()) if each in known]:
        return (meant[0],)
    amounts = [each for each in ("cpu", "memory", "gpus") if each in known] if word in _AMOUNTS else []
    return tuple(amounts)


def _letters(key: str) -> str:
    return re.sub(r"[^a-z0-9]", "", key.lower())


def names_hint(name: str, known: Collection[str]) -> str:
    """The end of a message about an unknown name: the known name that it resembles, else all of them, or some."""
    if near := difflib.get_close_matches(name, known, 1):
        return f"did you mean {near[0]!r}?"
    shown = sorted(known)[:_MOST_NAMES]
    more = len(known) - len(shown)
    return f"use one of {', '.join(shown)}{f' and {more} more' if more else ''}" if shown else "there are none"


_MOST_NAMES = 10
"""The most names that a message lists."""
