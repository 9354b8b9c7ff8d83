"""A book of a few pages, built as the course is."""

import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
FRONT = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  name: python3
  display_name: Python 3
---
"""


def build(folder, pages, whole=True, **environment):
    """Build a book of these pages, {name: text}, with the course's own configuration: whole, or what has changed; what
    `make book` reads from the environment is given as keywords. Returns the finished process.
    """
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    config["bibtex_bibfiles"] = [str(ROOT / "book/references.bib")]
    (folder / "_config.yml").write_text(yaml.safe_dump(config))
    toc = {"format": "jb-book", "root": "start", "chapters": [{"file": name} for name in pages]}
    (folder / "_toc.yml").write_text(yaml.safe_dump(toc))
    (folder / "start.md").write_text("# Start\n")
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text() != FRONT + text:
            path.write_text(FRONT + text)
    shutil.copy(ROOT / "book/figures.py", folder)
    return subprocess.run(
        [sys.executable, ROOT / "book" / "build.py", "build", *["--all"] * whole, "-n", "-W", "--keep-going", folder],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "NO_COLOR": "1"} | environment,
    )
