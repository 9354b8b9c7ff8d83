"""`{quiz}`: a question with its answer, hint and solution, readable without scripts."""

from collections import Counter

import yaml
from course_html import Tag, details, parse, parse_inline, tag
from course_progress import note
from course_site import add_module
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

KINDS = {
    "numeric": {"question", "answer", "solution"},
    "single": {"question", "choices", "solution"},
    "multiple": {"question", "choices", "solution"},
}
OPTIONAL = {"kind", "tolerance", "hint"}
LETTERS = "ABCDEFGHIJ"


class Quiz(SphinxDirective):
    """A question. The argument is its label, the body YAML; texts are MyST."""

    required_arguments = 1
    has_content = True

    def run(self):
        label = nodes.make_id(self.arguments[0])
        data = self._data()
        kind = data["kind"]
        add_module(self.env, "quiz")
        attributes = {"data_kind": kind}
        if kind == "numeric":
            attributes |= {"data_answer": repr(data["answer"]), "data_tolerance": repr(data.get("tolerance", 0))}
        question = tag("div", *parse(self, data["question"]), ids=[f"{label}-question"], classes=["quiz-question"])
        answers = _number() if kind == "numeric" else _choices(self, data, label)
        # The button and the verdict are of no use without the script, which shows them
        check = tag("button", nodes.Text("Check"), type="button", classes=["quiz-check"], hidden=True)
        verdict = tag("p", role="status", classes=["quiz-verdict"])
        dropdowns = [
            details(title, *parse(self, data[key]), classes=[key])
            for key, title in (("hint", "Hint"), ("solution", "Solution"))
            if key in data
        ]
        self.env.get_domain("std").note_hyperlink_target(label, self.env.docname, label, "Question")
        return [
            tag(
                "div",
                question,
                answers,
                check,
                verdict,
                *dropdowns,
                ids=[label],
                classes=["quiz"],
                role="group",
                aria_labelledby=f"{label}-question",
                **attributes,
            )
        ]

    def _data(self):
        try:
            data = yaml.safe_load("\n".join(self.content))
        except yaml.YAMLError as error:
            raise self.error(f"the quiz is not YAML: {error}") from None
        if not isinstance(data, dict):
            raise self.error("the body of a quiz is YAML with keys: kind, question, ...")
        kind = data.get("kind")
        if kind not in KINDS:
            raise self.error(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")
        missing, unknown = KINDS[kind] - set(data), set(data) - KINDS[kind] - OPTIONAL
        if missing or unknown:
            raise self.error(f"quiz of kind {kind}: missing {sorted(missing)}, unknown {sorted(unknown)}")
        if kind != "numeric":
            if len(data["choices"]) > len(LETTERS):
                raise self.error(f"at most {len(LETTERS)} choices")
            right = sum(bool(choice.get("right")) for choice in data["choices"])
            if right == 0 or (kind == "single" and right > 1):
                raise self.error(f"{right} of the choices are right")
        return data


def _number():
    field = tag("input", type="text", inputmode="decimal", autocomplete="off", size="10")
    # quiz.js puts it on the page: without scripts there would be nothing to do with it
    return tag("template", tag("label", nodes.Text("Your answer "), field, classes=["quiz-number"]))


def _choices(directive, data, label):
    kind = "radio" if data["kind"] == "single" else "checkbox"
    items = []
    for letter, choice in zip(LETTERS, data["choices"], strict=False):
        box = tag("input", type=kind, name=label)
        if choice.get("right"):
            box["html"]["data-right"] = ""
        text = tag("span", *parse_inline(directive, str(choice["text"])))
        # The letter is what people say, and gives a choice that is one formula a name
        item = [tag("label", box, tag("span", nodes.Text(letter), classes=["letter"]), nodes.Text(" "), text)]
        if "why" in choice:
            item.append(tag("div", *parse(directive, choice["why"]), classes=["quiz-why"], hidden=True))
        items.append(tag("li", *item))
    return tag("ul", *items, classes=["quiz-choices"])


def note_questions(app, doctree):
    """Remember each question by the title of the section that it stands in, a second one there by its number too."""
    seen = Counter()
    for quiz in doctree.findall(Tag):
        if "quiz" in quiz["classes"]:
            section, label = quiz, quiz["ids"][0]
            while not isinstance(section, nodes.section):
                section = section.parent
            title = section.next_node(nodes.title).astext()
            seen[title] += 1
            number = f" ({seen[title]})" if seen[title] > 1 else ""
            note(app.env, "quiz", f"quiz/{label}", title + number, label)


def setup(app):
    app.add_directive("quiz", Quiz)
    app.connect("doctree-read", note_questions)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
