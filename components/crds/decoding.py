"""What Go decodes: the schemas of definitions accept more.

An object that its controller cannot decode hides all objects of its kind in the cluster from it
(kubernetes-sigs/controller-runtime issue 2591): anybody who may create a RayJob, or patch a PodGroup, could stop those
of all tenants. What the narrowed schemas accept, the controller decodes.
"""

from core.body import Body

_INT32 = (-(2**31), 2**31 - 1)
"""Numbers of 32 bits. API servers themselves compare with the format from Kubernetes 1.36 on (apiextensions-apiserver:
formats.go), and take only integers of 64 bits."""

_NUMBER = (-(2**53), 2**53)
"""A float32 decodes more. An API server compares whole numbers with limits as int64, which have to be below 2^63
(kube-openapi: validation/validate/values.go)."""

_QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""The format of quantities in definitions (controller-gen). It allows exponents with a fraction."""

_HOURS = "([01][0-9]|2[0-3])"

_DECODED = {
    _QUANTITY: r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,3}))?$",
    # RFC 3339; the API server also accepts small letters and any offset (kube-openapi: strfmt.IsDateTime).
    "date-time": rf"^[0-9]{{4}}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T{_HOURS}(:[0-5][0-9]){{2}}(\.[0-9]+)?"
    rf"(Z|[+-]{_HOURS}:[0-5][0-9])$",
}
"""Patterns by the pattern or format that they replace (apimachinery: ParseQuantity; package time)."""

_LONGEST = 64
"""Characters of an amount. Go takes three seconds for one of a million digits, each time that it reads the object."""


def decodable(schema: Body) -> Body:
    """A structural schema, narrowed to what Go decodes: integers, float32, IntOrString, Quantity and Time."""
    made = dict(schema)
    if pattern := _DECODED.get(str(schema.get("pattern", schema.get("format")))):
        made |= {"pattern": pattern, "maxLength": _LONGEST}
    elif schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int32":
        made = _between(made, *_INT32)
    elif schema.get("type") == "number":
        made = _between(made, *_NUMBER)
    if "properties" in schema:
        made["properties"] = {name: decodable(each) for name, each in schema["properties"].items()}
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            made[keyword] = decodable(schema[keyword])
    return made


def _between(schema: Body, least: int, most: int) -> Body:
    """A definition's own limits are narrower."""
    return {"minimum": least, "maximum": most, **schema}


def decodable_definition(body: Body) -> Body:
    """A CustomResourceDefinition with the schemas of all its versions narrowed."""
    versions = [
        {**each, "schema": {"openAPIV3Schema": decodable(each["schema"]["openAPIV3Schema"])}}
        if "schema" in each
        else each
        for each in body["spec"]["versions"]
    ]
    return {**body, "spec": {**body["spec"], "versions": versions}}
