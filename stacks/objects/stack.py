"""All objects of a stack, and the images of their pods. Pure functions."""

from collections.abc import Iterator, Mapping

from components.kueue.manifests import kueue_image
from components.objects import Object, below
from components.volcano.manifests import volcano_images
from core.body import Body
from core.images import images_in, mirrored
from core.problems import Problem, place
from kuberay.formats import derived
from stacks.cached import cached
from stacks.objects.cml import installs_operator
from stacks.objects.platform import parts_of_platform
from stacks.objects.tenant import parts_of_tenant, tenant_namespace, workloads
from stacks.settings import StackSettings

STACK = "stack"
"""Name of the Pulumi stack in the names of objects, if it does not matter: the stack file does not have it."""

Key = tuple[str, str]
"""Kind, and `<namespace>/<name>`, or the name alone for objects without a namespace."""

Objects = Mapping[Key, Object]


@cached
def render(stack: StackSettings) -> Objects:
    """`render_as` with the name STACK."""
    return render_as(stack, STACK)


def render_as(stack: StackSettings, name: str) -> Objects:
    """All objects of a stack, or of the whole environment if it is split, as its components create them
    (`platform`, `tenant`). On the platform of another stack these are RayClusters and the objects of each.

    `name`: the name of the Pulumi stack, which is in the names of objects.

    Raises Problems, with paths in the RayCluster's settings, as `rendered` does.
    """
    return {key_of(each.body): each for each in _listed(stack, name)}


def _listed(stack: StackSettings, name: str) -> list[Object]:
    made = [each for part in parts_of_platform(stack, name) for each in part.objects]
    for index, tenant in enumerate(stack.tenants):
        if tenant.create_namespace and not stack.platform:
            made += below([tenant_namespace(tenant)], ("tenants", index))
        for part in parts_of_tenant(stack, tenant):
            made += below(part.objects, ("tenants", index))
    return made


def problems_of_objects(stack: StackSettings) -> Iterator[Problem]:
    """Objects of one kind and name: one of them would be lost. KubeRay makes some itself, named as a RayCluster: its
    account would have the rights of the stack's. Raises Problems as `render` does."""
    first: dict[Key, Object] = {}
    for each in _listed(stack, STACK):
        key = key_of(each.body)
        before = first.setdefault(key, each)
        if before.body != each.body:
            message = f"{' '.join(key)} is also made for {place(before.place) or 'the stack'}: set another name"
            yield Problem(each.place, key[1].rpartition("/")[2], message, "repeated-name")
    for (kind, name), cluster in ray_clusters(stack).items():
        own = f"{name.rpartition('/')[0]}/{derived(cluster.body['metadata']['name'])}"
        for role in ("Role", "RoleBinding"):
            if kind == "RayCluster" and (other := first.get((role, own))):
                message = (
                    f"{role} {own} is also made for {place(other.place) or 'the stack'}, and KubeRay would use it for "
                    "the account of the autoscaler: set another name"
                )
                yield Problem((*cluster.place, "name"), cluster.body["metadata"]["name"], message, "repeated-name")


@cached
def ray_clusters(stack: StackSettings) -> Objects:
    """The RayClusters of a stack. Raises Problems as `render` does."""
    return {
        key_of(each.body): each
        for index, tenant in enumerate(stack.tenants)
        for part in workloads(stack, tenant)
        for each in below(part.objects, ("tenants", index))
        if each.body["kind"] == "RayCluster"
    }


def key_of(body: Body) -> Key:
    metadata = body["metadata"]
    inside = f"{metadata['namespace']}/" if "namespace" in metadata else ""
    return body["kind"], f"{inside}{metadata['name']}"


def images_of(stack: StackSettings) -> set[str]:
    """All images that the pods of a stack use, by the names in the pods: with the stack's mirrors.

    The containers that KubeRay adds to pods use the image of the Ray container. The operator's image is the one of
    KubeRay's own kustomize tree unless the settings set another; a tree of another location is not rendered for it.
    """
    return set(users_of_images(stack))


def without_mirrors(stack: StackSettings) -> StackSettings:
    """The stack with all images by their whole names."""
    # A copy has `images` set, so it would not count as a stack without Kubernetes (without_kubernetes).
    if not stack.images.mirrors:
        return stack
    return stack.model_copy(update={"images": stack.images.model_copy(update={"mirrors": {}})})


def users_of_images(stack: StackSettings) -> dict[str, list[str]]:
    """The images of a stack as `images_of`, each with the objects whose pods use it: `RayCluster team-a/training`."""
    found: dict[str, list[str]] = {}
    for program, images in _images_of_programs(stack).items():
        for image in images:
            found.setdefault(mirrored(image, stack.images.mirrors), []).append(program)
    for (kind, name), each in render(stack).items():
        # These use the names of the mirrors already.
        for image in dict.fromkeys(image for _, image in images_in(each.body)):
            found.setdefault(image, []).append(f"{kind} {name}")
    return found


def _images_of_programs(stack: StackSettings) -> dict[str, list[str]]:
    """The images of the programs that the stack installs from their own manifests, by the names of the programs."""
    found: dict[str, list[str]] = {}
    if installs_operator(stack):
        found["KubeRay"] = [stack.operator.image or f"quay.io/kuberay/operator:v{stack.operator.version}"]
    if stack.scheduler and (program := stack.scheduler.configured).install == "manifests":
        images = volcano_images(program.version) if stack.scheduler.volcano else [kueue_image(program.version)]
        found[stack.scheduler.backend.capitalize()] = images
    return found
