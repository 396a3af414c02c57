"""How Sphinx builds this site: `sphinx-build -W --keep-going -n docs build/docs`. No page needs a network."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Generic, TypeVar

import numpy.typing

Scalar = TypeVar("Scalar")


class ArrayLike:
    """Replaces a union of a dozen types in signatures."""


class NDArray(Generic[Scalar]):
    """Replaces an array's type, whose one argument is two levels deep."""


# Signatures show these names. What imports them from there has to come later.
for shown in (ArrayLike, NDArray):
    shown.__module__ = "numpy.typing"
    setattr(numpy.typing, shown.__name__, shown)

# Before autodoc imports with TYPE_CHECKING on, in which pydantic makes no models.
import stsbench.records.record  # noqa: E402
import stsbench.training.recipe  # noqa: E402, F401

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "stsbench"
author = "The stsbench developers"
version = release = version_of("stsbench")
copyright = "the stsbench developers, Apache 2.0"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "site_links",
    "api_pages",
    "command_pages",
    "example_reports",
    "executed_notebooks",
    "mathml",
    "template_table",
]
exclude_patterns = ["_ext", "_static", "SKILL.md"]
html_extra_path = ["llms.txt", "SKILL.md"]

# What was run elsewhere is shown as it came out: the tests run the notebooks, and building must not.
nb_execution_mode = "off"
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
napoleon_use_ivar = True
napoleon_attr_annotations = False
# Quotes and dashes of code stay as they are to be typed.
smartquotes = False

python_maximum_signature_line_length = 90
python_use_unqualified_type_names = True
# Docstrings write code in single backticks, as Markdown does.
default_role = "code"

suppress_warnings = ["ref.python"]  # a word of such an annotation may be the name of several attributes
nitpick_ignore_regex = [
    # Other people's types: their documentation is elsewhere, and building fetches nothing.
    ("py:.*", r"(collections|matplotlib|np|numpy|pathlib|pd|pandas|pydantic|torch|types|typing)\..*"),
    ("py:class", r"Figure|Path|Tensor|nn\.Module|Trainer|TrainingArguments|Trainer(State|Control)"),
    # Aliases, whose values are described in words.
    ("py:class", r"EncodeFunction|Label|Rows|Status|Wanted|Style"),
    # Types that only our own code makes.
    ("py:class", r"stsbench\.(diagnosis\.search\.Search|training\.recipe\.Recipe|scoring\.subjects\.ScoredTask)"),
    (
        "py:class",
        r"stsbench\.analysis\.(base\.Read|compress\.PairedVectors|inputs|stability\.Retyped|cutoffs\.LabelledPairs).*",
    ),
    (
        "py:class",
        r"stsbench\.reproduction\.(answers\.Answer|reproduced\.ReproducedCell|reproduced\.Cost|table_plan\.TablePlan)",
    ),
    ("py:class", r"stsbench\.(published\.schema\.Usage|render\.page\.Pointer)"),
    ("py:class", r"stsbench\.browsing\.sections\.RunSummary"),
    ("py:class", r"stsbench\.(encoders\.checkpoint\.HashedFiles|scoring\.task\.Task)"),
    ("py:class", r"stsbench\.(records\.parts\.RecordPart|compat\.senteval\.utils\.dotdict)"),
    ("py:class", r"stsbench\.judging\.aligned\.AlignedScores"),
]

html_theme = "furo"
html_title = f"stsbench {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
copybutton_prompt_text = "$ "
copybutton_exclude = ".linenos, .gp, .go"
