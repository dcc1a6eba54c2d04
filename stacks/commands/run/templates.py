"""What a name on the command line means among the job templates of a stack file. Pure functions."""

from __future__ import annotations

from core.suggestions import names_hint
from stacks.commands.status.targets import NoSuchTargetError
from stacks.settings import StackSettings


def namespace_of_template(stack: StackSettings, word: str) -> tuple[str, str]:
    """Namespace and name of the job template of that name, or `<namespace>/<name>`. Raises NoSuchTargetError."""
    namespace, _, name = word.rpartition("/")
    known = [(tenant.namespace_name, each.name) for tenant in stack.tenants for each in tenant.job_templates]
    meant = [each for each in known if each[1] == name and namespace in ("", each[0])]
    if len(meant) > 1:
        several = " or ".join("/".join(each) for each in meant)
        raise NoSuchTargetError(f"several tenants have a job template {name!r}: write {several}")
    if not meant:
        names = {"/".join(each) if namespace else each[1] for each in known}
        raise NoSuchTargetError(f"the stack file has no job template {word!r}: {names_hint(word, names)}")
    return meant[0]
