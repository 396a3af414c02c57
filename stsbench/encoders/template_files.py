"""Reading templates: the known ones by name, a person's own from a YAML file."""

from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from stsbench.base.errors import UserError
from stsbench.base.parsing import first_mistake, known_keys, read_draft
from stsbench.base.words import suggestion
from stsbench.encoders.template import Template

NO_TEMPLATE = "none"
"""What a person gives for no template, where a known checkpoint brings one."""

_SUFFIXES = {".yaml", ".yml"}


@cache
def template_names() -> tuple[str, ...]:
    """Return the names of the templates that come with the package.

    >>> "promptbert" in template_names()
    True
    """
    return tuple(sorted(path.stem for path in _folder().glob("*.yaml")))


def read_template(wanted: str | Path | Template) -> Template:
    """Return a template.

    Args:
        wanted: the name of a known one, a YAML file, or a template, which is returned as it is.

    Raises:
        UserError: if there is none of that name, or the file is none; naming the line of the first mistake.

    >>> read_template("e5").texts
    ('query: {sentence}',)
    """
    if isinstance(wanted, Template):
        return wanted
    path = Path(wanted).expanduser()
    if path.suffix not in _SUFFIXES:
        names = template_names()
        if str(wanted) not in names:
            every = f"choose one of {', '.join(names)}, or a .yaml file."
            raise UserError(f"unknown template {str(wanted)!r}: {suggestion(wanted, names, otherwise=every)}")
        return _known(str(wanted))
    if not path.is_file():
        raise UserError(f"there is no template file {path}: check the path.")
    return _read(path)


@cache
def _known(name: str) -> Template:
    return _read(_folder() / f"{name}.yaml")


def _read(path: Path) -> Template:
    draft = read_draft(path, "a template", "`docs/how-to/templates.md`")
    try:
        return Template.model_validate({"name": path.stem} | draft.values)
    except ValidationError as error:
        raise UserError(first_mistake(error, draft, str(path), known_keys(Template))) from error


def _folder() -> Path:
    return Path(str(files("stsbench.encoders") / "templates"))
