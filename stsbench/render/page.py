"""Pages that need no network: their looks, and what a browser may do for them."""

import re
from abc import abstractmethod
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stsbench.base.files import atomic_path, require_new_file
from stsbench.render.cells import one_line
from stsbench.render.result import Result

if TYPE_CHECKING:
    from markupsafe import Markup

_HEIGHT = 900
"""Of a page in a notebook's cell, in pixels."""


class PageResult(Result):
    """A result that is a page to look into."""

    @property
    @abstractmethod
    def html(self) -> str:
        """The page."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What the page is called."""

    def save(self, path: str | Path) -> Path:
        """Write the page.

        Raises:
            UserError: if that cannot be done.
        """
        target = Path(path).expanduser()
        require_new_file(target)
        with atomic_path(target) as temporary:
            temporary.write_text(self.html, encoding="utf-8", errors="backslashreplace", newline="")
        return target

    def _repr_html_(self) -> str:
        # A frame of its own: neither does the notebook's style reach the page, nor the page's script the notebook.
        look = f'style="width: 100%; height: {_HEIGHT}px; border: 0"'
        return (
            f'<iframe title="{escape(one_line(self.title))}" sandbox="allow-scripts allow-downloads" {look} '
            f'srcdoc="{escape(self.html)}"></iframe>'
        )


def render_page(
    package: str, template: str, style: tuple[str, ...], script: tuple[str, ...], **content: Any
) -> str:
    """Return a page made of a template; all text that it is given is escaped.

    Args:
        package: whose folder `templates` holds the template, `stsbench.reports` say.
        template: its file.
        style: the CSS files, of the package or of `stsbench.render`.
        script: the JavaScript files, likewise.
        **content: what the template names.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["line"] = one_line
    environment.filters["sentence"] = as_sentence
    css, js = (_assets(package, names) for names in (style, script))
    return environment.get_template(template).render(css=css, script=js, policy=_policy(css, js), **content)


_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*(?: [\w-]{1,20}:[\w-]{1,20}(?![\w:-]))?")
"""An option in a sentence, with a task and its split after it: `--tasks SICK-R:all`."""


def as_sentence(text: str) -> "Markup":
    """Return text as one line of HTML, options in it as code: a line does not end at their hyphens.

    >>> print(as_sentence("a < b with --tasks STS12:all"))
    a &lt; b with <code class="option">--tasks STS12:all</code>
    """
    from markupsafe import Markup

    return Markup(_OPTION.sub(r'<code class="option">\g<0></code>', escape(one_line(text))))  # escaped before


def _policy(css: str, script: str) -> str:
    """Return what a browser may do for the page: run its own script, take its own style, show its own figures.

    Whatever else finds its way into a page, text of a data set or a name, is shown and never run or fetched.
    """
    rules = {
        "default-src": "'none'",
        "img-src": "'self' data:",
        "style-src": _hash(css),
        "script-src": _hash(script),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _hash(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"


def _assets(package: str, names: Sequence[str]) -> "Markup":
    from markupsafe import Markup

    texts = []
    for name in names:
        own = files(package).joinpath("templates", name)
        shared = files("stsbench.render").joinpath("templates", name)
        texts.append((own if own.is_file() else shared).read_text(encoding="utf-8"))
    # Our own files, not data: they go into the page as they are. With the line breaks inside the elements: the
    # hashes in the page's policy are of all that stands in them.
    return Markup("\n" + "".join(texts))
