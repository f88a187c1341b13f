"""How the documentation is built: ``make docs``."""

import sys
import warnings
from pathlib import Path

import unspool

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "unspool"
author = "the unspool developers"
project_copyright = "the unspool developers, MIT licence"
version = release = unspool.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "mathml",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "api_pages",
    "paper_links",
    "explorer_page",
    "repository_links",
    "site_links",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_ext", "_build", "images", "sg_execution_times.rst"]
templates_path = []
html_title = f"unspool {version}"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["theme.js"]
html_extra_path = []
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6e99", "color-brand-content": "#0b6e99"},
    "dark_css_variables": {"color-brand-primary": "#5cb8e0", "color-brand-content": "#5cb8e0"},
}
html_math_renderer = "mathml"

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
napoleon_google_docstring = True
napoleon_custom_sections = [("Shapes", "params_style"), "Shape"]
napoleon_use_ivar = True
napoleon_use_rtype = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"plugin|__init__",
    "image_scrapers": ("saved_pictures.scrape",),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "min_reported_time": 1000,
    "nested_sections": False,
    "within_subsection_order": "gallery_order.Reading",
    "reset_modules": ("matplotlib",),
    "copyfile_regex": "",
}
# Words such as "mean" in the description of a type are words, not names of things.
suppress_warnings = ["config.cache", "ref.python"]
warnings.filterwarnings("ignore", message=".*torch.jit.*")
