"""Formulas as MathML, made while the site is built: the reader's browser runs nothing for them."""

import re
from functools import cache
from html import escape

from course_html import tag
from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

OPENING, CLOSING = re.compile(r"[(\[“‘]*$"), re.compile(r"[.,;:!?)\]”’–-]*")
# The sign for a prime is raised and small as it is; as a superscript it would be both twice
PRIME = re.compile(r"<msup>((?:(?!<msup>).)*?)<mo>′</mo></msup>")
SUBSCRIPT_AND_PRIME = re.compile(r"<msubsup>(<mi[^>]*>[^<]*</mi>)(<mi[^>]*>[^<]*</mi>)<mo>′</mo></msubsup>")
logger = logging.getLogger(__name__)


@cache
def _converter(macros):
    return LatexToMathML(macros=dict(macros), fancy_error=False)


def mathml(builder, node, *, display):
    """Turn a math node into a `<math>` element. A formula that fails is a warning, hence a failed build."""
    latex = node.astext().replace("\n", " ")  # a backslash at the end of a line is a space
    converter = _converter(tuple(sorted(builder.config.math_macros.items())))
    try:
        made = converter.convert_with_local_state(latex, displaystyle=display)
        made = PRIME.sub(r"<mrow>\1<mo>′</mo></mrow>", made)
        made = SUBSCRIPT_AND_PRIME.sub(r"<msub><mrow>\1<mo>′</mo></mrow>\2</msub>", made)
        return made.replace("<mo>′</mo>", '<mo lspace="0" rspace="0">′</mo>')
    except LatexError as error:
        logger.warning("formula %r: %s", latex, error, location=node, type="course", subtype="math")
        return "<code></code>"


def visit_inline(self, node):
    formula = mathml(self.builder, node, display=False)
    if _in_table_head(node):  # axe does not take a formula alone for the name of a column
        formula = formula.replace("<math", f'<math title="{escape(node.astext())}"', 1)
    self.body.append(formula)
    raise nodes.SkipNode


def _in_table_head(node):
    while node.parent is not None and not isinstance(node, nodes.thead):
        node = node.parent
    return isinstance(node, nodes.thead)


def keep_marks(app, doctree):
    """Put a formula and the marks around it into one piece: else a line could begin with the full stop after it."""
    for math in list(doctree.findall(nodes.math)):
        parent, place = math.parent, math.parent.index(math)
        before, after = (parent[i] if 0 <= i < len(parent) else None for i in (place - 1, place + 1))
        opening = OPENING.search(before)[0] if isinstance(before, nodes.Text) else ""
        closing = CLOSING.match(after)[0] if isinstance(after, nodes.Text) else ""
        if isinstance(parent, (nodes.paragraph, nodes.caption)) and (opening or closing):
            piece = tag("span", nodes.Text(opening), math.deepcopy(), nodes.Text(closing), classes=["kept"])
            parent[place] = piece
            if opening:
                parent[place - 1] = nodes.Text(before.removesuffix(opening))
            if closing:
                parent[place + 1] = nodes.Text(after.removeprefix(closing))


def visit_display(self, node):
    # The box that scrolls on a phone is inside, so that the number stays in view
    self.body.append(self.starttag(node, "div", CLASS="formula"))
    self.body.append(f'<div class="formula-box">{mathml(self.builder, node, display=True)}</div>')
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    app.add_config_value("math_macros", {}, "env", dict)
    app.connect("doctree-read", keep_marks)
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
