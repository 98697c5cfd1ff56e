"""How Sphinx builds the documentation; ``make docs`` runs it."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
# What libraries tell of themselves while examples run would hide what Sphinx has to say.
os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "warning")
logging.getLogger("matplotlib").setLevel(logging.WARNING)
sys.path.insert(0, str(HERE / "_extensions"))

from figure_scraper import require_quiet_and_drawn, scrape_figures  # noqa: E402

from rblspi import __version__  # noqa: E402

project = "rblspi"
author = "The rblspi developers"
copyright = author
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "command_reference",
    "docstrings",
    "explorer_page",
    "links",
    "mathml",
]
exclude_patterns = ["_build", "skeleton", "gallery/*.ipynb", "gallery/*.py", "gallery/*.md5"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [("py:class", ".*")]  # types of parameters, many of them other packages'
# a function among the settings of the gallery; attributes that several classes have
suppress_warnings = ["config.cache", "ref.python"]
highlight_language = "text"
default_role = "py:obj"
smartquotes_action = "qe"  # two dashes begin an option

html_theme = "furo"
html_title = "rblspi"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": (scrape_figures,),
    "reset_modules": (require_quiet_and_drawn,),
    "reset_modules_order": "both",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,  # its page asks other servers for scripts
    "min_reported_time": 0,
    "plot_gallery": "True",
    "remove_config_comments": True,
}
