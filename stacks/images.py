"""The container images of a stack's pods."""

from components.kueue.manifests import kueue_image
from components.redis_gateway.settings import IMAGE as GATEWAY_IMAGE
from components.volcano.manifests import volcano_images
from core.images import full_name, images_in, mirrored

from .render import render
from .settings import StackSettings

__all__ = ["GATEWAY_IMAGE", "full_name", "images_of"]


def images_of(stack: StackSettings) -> set[str]:
    """All images that the pods of a stack use, by the names in the pods: with the stack's mirrors.

    The containers that KubeRay adds to pods use the image of the Ray container. The operator's image is the one of
    KubeRay's own kustomize tree unless the settings set another; a tree of another location is not rendered for it.
    """
    ours = stack.platform is None and stack.operator.install == "manifests"
    found = {_operator(stack)} if ours else set()
    if stack.scheduler and stack.scheduler.volcano and stack.scheduler.volcano.install == "manifests":
        found.update(volcano_images(stack.scheduler.volcano.version))
    if stack.scheduler and stack.scheduler.kueue and stack.scheduler.kueue.install == "manifests":
        found.add(kueue_image(stack.scheduler.kueue.version))
    found = {mirrored(image, stack.images.mirrors) for image in found}
    # These use the names of the mirrors already.
    return found.union(image for each in render(stack).values() for _, image in images_in(each.body))


def _operator(stack: StackSettings) -> str:
    return stack.operator.image or f"quay.io/kuberay/operator:v{stack.operator.version}"
