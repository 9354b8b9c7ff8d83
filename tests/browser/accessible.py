"""axe-core on a page as it stands."""

from pathlib import Path

import axe_playwright_python

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
# A page of code has thousands of coloured words, and axe looks behind each of them. Words that agree in their colour,
# and in every tag, class and state above them, are as legible as one another: one of them stands for all.
RUN = """async ([part, without, only]) => {
    const style = document.createElement("style"); // all of the page, not only what is near
    style.textContent = "section { content-visibility: visible !important }";
    document.head.append(style);
    for (let frame = 0; frame < 2; frame++) await new Promise((done) => requestAnimationFrame(done));
    for (const marked of document.querySelectorAll("[data-legible]")) delete marked.dataset.legible;
    const attributes = ["class", "style", "open", "hidden", "disabled", "data-verdict",
        "aria-current", "aria-pressed", "aria-disabled", "aria-invalid"];
    const paths = new Map([[document.documentElement, ""]]), seen = new Set();
    for (const element of document.body.querySelectorAll("*")) {
        const own = attributes.map((name) => element.getAttribute(name)).join();
        const path = `${paths.get(element.parentElement) ?? ""}/${element.localName} ${own}`;
        paths.set(element, path);
        if (![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
        const key = `${path} ${getComputedStyle(element).color}`;
        if (!seen.has(key)) element.dataset.legible = "";
        seen.add(key);
    }
    axe.configure({ rules: [{ id: "color-contrast", selector: "[data-legible], input" }] });
    const rules = { "td-has-header": { enabled: true }, "target-size": { enabled: true } }; // as Lighthouse does
    for (const name of without) rules[name] = { enabled: false };
    const options = { resultTypes: ["violations"], ...(only.length ? { runOnly: only } : { rules }) };
    const { violations } = await axe.run(part, options);
    return violations.map(({ id, help, nodes }) =>
        `${id}: ${help}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 150)).join(" | ")}`);
}"""


def violations(page, part="html", without=(), only=()):
    """What axe-core finds wrong with a page, or with a part of it.

    Parameters
    ----------
    page : playwright.sync_api.Page
    part : str
        A selector.
    without, only : sequence of str
        Rules that are left out; or the only ones that are run.

    Returns
    -------
    list of str
        A line for each rule that is broken, with the first elements that break it.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    return page.evaluate(RUN, [part, list(without), list(only)])
