"""`{task}`: an exercise on the page, from the module that holds its solution. `{notebook}`: where to solve it."""

import os
import shutil
from pathlib import Path

from course_html import details, parse, parse_inline, tag
from course_progress import note
from course_run import chapters
from course_site import add_module
from docutils import nodes
from sphinx.ext.autodoc.mock import mock
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from autograder.course import CASES, GPU_PAGES, HEAVY, SOLUTIONS
from autograder.judging.exercise import find
from autograder.notebooks.site import colab
from autograder.notebooks.solution import exercise_texts

logger = logging.getLogger(__name__)
ROOT = Path(__file__).parents[2]
DIFFICULTY = {1: "easy", 2: "moderate", 3: "hard"}


def notebook_links(directive, folder, name):
    """The links to exercises/<folder>/<name>.ipynb: to download from this site, to open in Colab.

    A page of the GPU part is a notebook itself, beside that of its exercises: there the words, and the name of the
    file that is downloaded, tell the two apart.
    """
    config, docname = directive.config, directive.env.docname
    up, file = "../" * docname.count("/"), f"{name}.ipynb"
    words, colab_words = "Download the notebook", "Open in Colab"
    if folder == GPU_PAGES:
        words, colab_words, file = "Download this page as a notebook", "Open this page in Colab", f"{name}_page.ipynb"
    elif docname.startswith(f"book/{GPU_PAGES}/"):
        words, colab_words = "Download the exercises", "Open the exercises in Colab"
    address = f"{up}notebooks/{folder}/{name}.ipynb"
    download = tag("a", nodes.Text(words), href=address, download=file)
    return [
        download,
        nodes.Text(" · "),
        tag("a", nodes.Text(colab_words), href=colab(config, f"exercises/{folder}/{name}.ipynb")),
    ]


class Notebook(SphinxDirective):
    """Links to the notebook of a chapter; of a GPU chapter to that which its page becomes."""

    required_arguments = 1

    def run(self):
        chapter = self.arguments[0]
        folder = GPU_PAGES if self.env.docname.startswith(f"book/{GPU_PAGES}/") else chapter
        if not (ROOT / "exercises" / folder / f"{chapter}.ipynb").exists():
            logger.warning("no notebook of chapter %r: run make exercises", chapter, location=self.get_location())
        links = notebook_links(self, folder, chapter)
        if "book/start" in self.env.found_docs:  # a course may say there how to begin, and need not
            links.append(nodes.inline("", " · ", *parse_inline(self, "[In JupyterLab](start-lab)")))
        return [tag("p", *links, classes=["notebook-links"])]


class Task(SphinxDirective):
    """An exercise: what it asks, hints, the stub and, unless they are hidden, the solution."""

    required_arguments = 1

    def run(self):
        name = self.arguments[0]
        try:
            with mock([*HEAVY]):  # nothing of it is called here, and to load it takes seconds
                exercise = find(name)
        except KeyError:
            raise self.error(f"there is no exercise {name!r}") from None
        self.env.note_dependency(str(SOLUTIONS / f"{exercise.chapter}.py"))
        self.env.note_dependency(str(CASES / f"{exercise.chapter}.py"))
        text = exercise_texts(exercise.chapter)[name]

        number = self.env.temp_data["exercise_number"] = self.env.temp_data.get("exercise_number", 0) + 1
        label = f"exercise-{nodes.make_id(name)}"
        std = self.env.get_domain("std")
        std.note_hyperlink_target(label, self.env.docname, label, f"Exercise {number}: {text.title}")

        title = tag(
            "p",
            tag("span", nodes.Text(f"Exercise {number}"), classes=["exercise-number"]),
            nodes.Text(" "),
            *parse_inline(self, text.title),
            ids=[f"{label}-title"],
            classes=["exercise-title"],
        )
        body = [title, _facts(exercise), *parse(self, text.text)]
        if text.hints:
            body.append(_hints(self, text.hints))
        body.append(tag("div", _python(text.stub), classes=["exercise-stub"], data_stub=name))
        if not self.config.solutions_hidden:
            body.append(details("Solution", _python(text.solution), classes=["solution"]))
        body.append(tag("p", *notebook_links(self, exercise.chapter, exercise.chapter), classes=["notebook-links"]))
        attributes = {"data_exercise": name, "data_chapter": exercise.chapter}
        if exercise.chapter in chapters() and not self.config.solutions_hidden:
            attributes["data_solve"] = True  # the reader's browser can run it
            add_module(self.env, "solve")
            note(self.env, "exercise", f"exercise/{name}", text.title.replace("`", ""), label)
        return [
            tag(
                "section",
                *body,
                ids=[label],
                classes=["exercise"],
                aria_labelledby=f"{label}-title",
                **attributes,
            )
        ]


def _facts(exercise):
    return tag(
        "p",
        tag(
            "span",
            nodes.Text(exercise.dots),
            classes=["difficulty"],
            role="img",
            aria_label=f"Difficulty: {DIFFICULTY[exercise.difficulty]}, {exercise.difficulty} of 3",
        ),
        nodes.Text(f" up to about {exercise.minutes} minutes · {exercise.worth}"),
        classes=["exercise-facts"],
    )


def _hints(directive, hints):
    """Each hint holds the next, so that they open one after the other."""
    inner = []
    for number in range(len(hints), 0, -1):
        title = "Hint" if len(hints) == 1 else f"Hint {number} of {len(hints)}"
        inner = [details(title, *parse(directive, hints[number - 1]), *inner, classes=["hint"])]
    return inner[0]


def _python(code):
    return nodes.literal_block(code, code, language="python")


def copy_notebooks(app, exception):
    """Put the chapters' notebooks on the site."""
    if exception or app.builder.format != "html":
        return
    for notebook in (ROOT / "exercises").glob("*/*.ipynb"):
        target = Path(app.outdir) / "notebooks" / notebook.parent.name
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(notebook, target)


def setup(app):
    app.add_config_value("repository", "", "env", str)
    app.add_config_value("repository_branch", "main", "env", str)
    app.add_config_value("solutions_hidden", os.environ.get("SOLUTIONS") == "hidden", "env", bool)
    app.add_directive("task", Task)
    app.add_directive("notebook", Notebook)
    app.connect("build-finished", copy_notebooks)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
