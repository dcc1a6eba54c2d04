"""Fields whose text is YAML: RayJob's runtimeEnvYAML and RayService's serveConfigV2 (sigs.k8s.io/yaml)."""

import math

import yaml

_TAG = "tag:yaml.org,2002:"


def is_mapping(text: str) -> bool:
    """Whether the text's first document is a mapping that JSON can hold, or nothing.

    It is looked at node by node and not built, so that what anchors repeat counts once, and unknown tags do no harm.
    """
    loader = yaml.CSafeLoader(text) if text else None
    try:
        root = loader.get_node() if loader and loader.check_node() else None
        if root is None or root.tag == f"{_TAG}null":
            return True
        return isinstance(root, yaml.MappingNode) and _is_json(root)
    except (yaml.YAMLError, ValueError, RecursionError):
        return False
    finally:
        if loader:
            loader.dispose()


def _is_json(root: yaml.Node) -> bool:
    seen, waiting = {id(root)}, [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.ScalarNode) and not _is_scalar(node):
            return False
        if isinstance(node, yaml.MappingNode):
            if not all(isinstance(key, yaml.ScalarNode) and key.tag != f"{_TAG}null" for key, _ in node.value):
                return False
            children = [each for pair in node.value for each in pair]
        else:
            children = list(node.value) if isinstance(node, yaml.SequenceNode) else []
        waiting += [child for child in children if id(child) not in seen]
        seen.update(map(id, children))
    return True


def _is_scalar(node: yaml.ScalarNode) -> bool:
    """Numbers and such are what their tag says, and finite."""
    if not node.tag.startswith(_TAG) or node.tag in (f"{_TAG}str", f"{_TAG}merge", f"{_TAG}timestamp"):
        return True
    value = yaml.constructor.SafeConstructor().construct_object(node)
    return not isinstance(value, float) or math.isfinite(value)
