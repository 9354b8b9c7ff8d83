"""`jupyter-book build`, with a course's settings laid over those of every course.

Less what costs a build of one page a third of its time and brings it nothing.
"""

import argparse
import gc
import os
import sys
from pathlib import Path

gc.disable()  # the trees of the pages live until the end

import autograder.no_rfc3987  # noqa: E402, F401

# isort: split
EXTENSIONS = Path(__file__).resolve().parent / "_ext"
sys.path.insert(0, str(EXTENSIONS))
import yaml  # noqa: E402
from course_run import runtime_files  # noqa: E402
from jupyter_book.cli.main import main  # noqa: E402

from autograder.notebooks import site  # noqa: E402


def write_configuration(folder, target):
    """Write the file that Jupyter Book takes: the `_config.yml` of a folder over the engine's `site.yml`.

    Parameters
    ----------
    folder, target : path

    Returns
    -------
    path
        The file, under `target`, where the build goes.
    """
    settings = yaml.safe_load((EXTENSIONS / "site.yml").read_text(encoding="utf-8"))
    sphinx = settings["sphinx"]
    sphinx["local_extensions"] = dict.fromkeys(sphinx["local_extensions"], str(EXTENSIONS))
    sphinx["config"]["html_theme_path"] = [str(EXTENSIONS.parent / "_theme")]
    _lay_over(settings, site.configuration(folder))
    path = Path(target, "_build", "config.yml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    return path


def _lay_over(settings, own):
    for name, value in own.items():
        if isinstance(value, dict):
            _lay_over(settings.setdefault(name, {}), value)
        else:
            settings[name] = value


if os.environ.get("PYODIDE"):
    try:  # before minutes of building, not after
        runtime_files(os.environ["PYODIDE"])
    except ValueError as error:
        sys.exit(str(error))
parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
parser.add_argument("build")
parser.add_argument("folder")
parser.add_argument("--toc")
parser.add_argument("--path-output")
options, _ = parser.parse_known_args()
config = write_configuration(options.folder, options.path_output or options.folder)
main([*sys.argv[1:], "--config", str(config)], prog_name="jupyter-book")
