"""The one style of the book's figures.

A page's cell draws with Matplotlib and ends in `show(fig, alt=...)`, which puts an SVG on the page. The colours
named here are placeholders: in the SVG they become the page's own, so that a figure follows light and dark.
"""

import base64
import hashlib
import html
import io
import re

import matplotlib
import matplotlib.pyplot as plt
from IPython.display import HTML, display
from PIL import Image

INK, MUTED, GRID, PAPER = "#010203", "#010204", "#010205", "#010206"
COLORS = ["#010211", "#010212", "#010213", "#010214", "#010215", "#010216"]
DIVERGING = "RdBu_r"

# With the colour that stands in for the page's where there is no page, as in a notebook, light or dark
_PAGE_COLORS = {
    INK: "--ink,currentColor",
    MUTED: "--muted,#808790",
    GRID: "--line,#a3a9b366",
    PAPER: "--paper,Canvas",
} | {
    color: f"--figure-{number},{else_}"
    for number, (color, else_) in enumerate(
        zip(COLORS, ["#4a87cf", "#e0732b", "#429a73", "#9a70d0", "#b88a28", "#6399a8"], strict=True), 1
    )
}

matplotlib.rcParams.update(
    {
        "svg.fonttype": "none",  # text stays text: searchable, small, in the page's typeface
        "svg.hashsalt": "figures",  # the same figure gives the same file
        "font.size": 10,
        "axes.titlesize": 10.5,
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": MUTED,
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.linewidth": 0.8,
        "xtick.color": MUTED,
        "xtick.labelcolor": INK,
        "ytick.color": MUTED,
        "ytick.labelcolor": INK,
        "grid.color": GRID,
        "grid.linewidth": 0.8,
        "axes.prop_cycle": matplotlib.cycler(color=COLORS),
        "lines.linewidth": 1.8,
        "image.interpolation": "none",  # the browser enlarges, so the file holds each pixel once
        "image.composite_image": False,
        "legend.frameon": False,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        "axes.unicode_minus": True,
    }
)


def new_figure(width=6.4, height=3.2, **subplots):
    """Make a figure of that size in inches (96 pixels each on the page) and its axes."""
    return plt.subplots(figsize=(width, height), layout="constrained", **subplots)


def show(fig, alt):
    """Put a figure on the page.

    Parameters
    ----------
    fig : matplotlib.figure.Figure
        It is closed.
    alt : str
        What the figure shows, for readers who do not see it.

    Raises
    ------
    ValueError
        If `alt` is empty.
    """
    if not alt or not alt.strip():
        raise ValueError("a figure needs alternative text: show(fig, alt=...)")
    display(HTML(f'<div class="figure">{svg(fig, alt)}</div>'))
    plt.close(fig)


def svg(fig, alt):
    """Draw a figure as the text of one `<svg>` element that can stand in a page."""
    file = io.StringIO()
    fig.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"data:image/png;base64,\s*([^\"]+)", _webp, text)
    text = _own_ids(text)
    for color, variable in _PAGE_COLORS.items():
        text = re.sub(color, f"var({variable})", text, flags=re.IGNORECASE)
    width = fig.get_figwidth() * 96  # it may shrink to what a phone shows of the usual 6.4 inches
    box = re.search(r'viewBox="([^"]*)"', text)[1]
    head = (
        f'<svg role="img" aria-label="{html.escape(" ".join(alt.split()))}" '
        f'style="width:{width:.0f}px;min-width:{0.57 * width:.0f}px" viewBox="{box}">'
    )
    return head + re.sub(r"^<svg[^>]*>", "", text)


def _webp(match):
    """Store a picture exactly, or, when it has more colours than a colormap, as cameras do."""
    picture = Image.open(io.BytesIO(base64.b64decode(match[1])))
    is_photograph = picture.convert("RGBA").getcolors(257) is None
    file = io.BytesIO()
    picture.save(file, "WEBP", method=6, lossless=not is_photograph, quality=80 if is_photograph else 100)
    return "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode()


def _own_ids(text):
    """Drop the ids that nothing refers to, and make the others the figure's own on a page of many."""
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    prefix = hashlib.sha256(text.encode()).hexdigest()[:6]
    text = re.sub(r' id="([^"]+)"', lambda m: f' id="{prefix}-{m[1]}"' if m[1] in used else "", text)
    text = re.sub(r"url\(#", f"url(#{prefix}-", text)
    return re.sub(r'(xlink:href|href)="#', rf'\1="#{prefix}-', text)
