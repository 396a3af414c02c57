"""The reference of Python: links to public names, and signatures that read well."""

from importlib import import_module
from typing import Any

import pydantic
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.reference | None:
    """Return a reference to the documented object with a name, None if there is none.

    An annotation says `stsbench.records.record.RunRecord`, or `RunRecord` alone where it is quoted; the page says
    `stsbench.RunRecord`. They are one object.
    """
    if node.get("refdomain") != "py":
        return None
    python, target = env.domains.python_domain, node["reftarget"]
    wanted = _found(target) or _found(f"{node.get('py:module')}.{target}")
    for name in () if wanted is None else python.objects:
        if name != target and _found(name) is wanted:
            return python.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, content)  # type: ignore[return-value]
    return None


def _found(name: str) -> Any:
    """Return the class or function of a dotted name."""
    module, _, attribute = name.rpartition(".")
    if not module.startswith("stsbench"):
        return None
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError:
        return None
    return found if callable(found) else None


def shorten(
    _app: Sphinx, _what: str, _name: str, found: Any, _options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Return a signature without details that readers do not need."""
    if isinstance(found, type) and issubclass(found, pydantic.BaseModel):
        # Users do not construct these, and the constraints would fill a page.
        return "", None
    return signature and signature.replace("<factory>", "..."), returned


def setup(app: Sphinx) -> dict[str, Any]:
    """Resolve missing references and shorten signatures."""
    app.connect("autodoc-process-signature", shorten)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
