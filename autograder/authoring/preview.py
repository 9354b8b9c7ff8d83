"""`make preview PAGE=book/<page>`: one page as readers will see it, and what its exercises still lack.

The page alone is built, into `_build/preview/`: links to other pages lead nowhere there. Each exercise on it is put to
the tests that every exercise must pass, and the mutants of its solution are listed that no case catches.
"""

import argparse
import re
import subprocess
import sys
from difflib import get_close_matches

import yaml

from autograder.authoring.mutants import holes
from autograder.authoring.rules import broken
from autograder.course import ROOT
from autograder.judging.exercise import find, names
from autograder.notebooks.from_page import labels

OUT = ROOT / "_build" / "preview"
TASK = re.compile(r"^```\{task\} (\w+)", re.MULTILINE)
SHOWN = re.compile(r"^````.*?^````$", re.MULTILINE | re.DOTALL)  # a block that is shown as text


def build(page):
    """Build one page.

    Parameters
    ----------
    page : str
        Its text is `<page>.md`.

    Returns
    -------
    list of str
        What is wrong with it, in Sphinx's words.
    """
    OUT.mkdir(parents=True, exist_ok=True)
    cited = [{"file": "book/references"}] if (ROOT / "book" / "references.md").exists() else []
    toc = {"format": "jb-book", "root": page, "chapters": cited}
    (OUT / "_toc.yml").write_text(yaml.safe_dump(toc), encoding="utf-8")
    command = [sys.executable, ROOT / "book" / "build.py", "build", ROOT, "--all", "-n", "-q", "--keep-going"]
    command += ["--toc", OUT / "_toc.yml", "--path-output", OUT]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    lines = re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr).splitlines()
    elsewhere = _labels(page)
    wrong = [line for line in lines if f"{page}.md" in line and not _leads_to(line, elsewhere)]
    return wrong if wrong or done.returncode == 0 else lines[-20:]


def _labels(page):
    """What can be referred to on the other pages."""
    here = labels()[page][1]
    return {label.rpartition("/")[2] for label, (_, address) in labels().items() if address.partition("#")[0] != here}


def _leads_to(line, labels):
    """Whether a warning is about a link to one of the labels."""
    what = re.search(r"(?:undefined label|unknown document|not found): '?([\w/-]+)|label '([\w-]+)' not found", line)
    return what is not None and (what[1] or what[2]).rpartition("/")[2] in labels


def main():
    """Preview a page; the exit status is 1 when something is to be done."""
    parser = argparse.ArgumentParser(
        prog="python -m autograder.authoring.preview", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("page", help="such as book/intro")
    parser.add_argument("exercise", nargs="*", help="look at these alone (default: all on the page)")
    options = parser.parse_args()
    page = options.page.removesuffix(".md")
    if not (ROOT / f"{page}.md").is_file():
        pages = [str(path.relative_to(ROOT).with_suffix("")) for path in (ROOT / "book").rglob("*.md")]
        near = get_close_matches(page, pages, 1, 0) or pages
        sys.exit(f"there is no page {page}.md; did you mean {near[0]}?")
    tasks = TASK.findall(SHOWN.sub("", (ROOT / f"{page}.md").read_text(encoding="utf-8")))
    strange = [name for name in options.exercise if name not in tasks]
    if strange:
        sys.exit(f"{page}.md shows no exercise {strange[0]}: put a {{task}} block there")
    _write_notebooks(page, tasks)
    wrong = build(page)
    print(*wrong, f"The page: {(OUT / '_build' / 'html' / page).relative_to(ROOT)}.html", sep="\n")
    print(f"Open it with: make serve SITE={(OUT / '_build' / 'html').relative_to(ROOT)}")
    for name in options.exercise or tasks:
        exercise = find(name)
        errors, (unseen, idle) = broken(exercise), holes(exercise)
        print(f"\n{name}: {'to be done' if errors or unseen or idle else 'good'}", *errors, sep="\n  ")
        for before, after in unseen:
            print("  No case sees the difference between", before, "and", after, sep="\n    ")
        for before, after in idle:
            print("  spared.toml spares what does not survive:", before, "as", after, sep="\n    ")
        wrong += [*errors, *unseen, *idle]
    return bool(wrong)


def _write_notebooks(page, tasks):
    """Write the notebooks of the chapters whose exercises stand on a page, or say what is missing."""
    from autograder.notebooks.generate import generate  # imports nbgrader

    for name in tasks:
        if name not in names():
            sys.exit(f"{page}.md shows {name}, which is declared in no autograder/cases/<chapter>.py")
    for chapter in dict.fromkeys(names()[name] for name in tasks):
        try:
            generate(chapter)
        except Exception as error:  # an author's code can fail in any way
            sys.exit(f"autograder/cases/{chapter}.py or solutions/{chapter}.py: {type(error).__name__}: {error}")


if __name__ == "__main__":
    sys.exit(main())
