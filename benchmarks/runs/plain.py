"""Run a page's notebook as a plain program, without Jupyter: a machine with a GPU may have PyTorch and little else.

    COURSE_SIZE=tiny python benchmarks/runs/plain.py small_vit found.json

Cells run in their order, those after a failed one too. What they print is shown; figures are drawn and thrown away.
"""

import dataclasses
import json
import linecache
import sys
import time
import types
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "exercises" / "gpu"
PAGES = ("small_vit", "position_ablation", "flexible_patches", "resolution_transfer")


def stand_in_for_ipython():
    """What figures.py imports of it, where it is not installed; not the package, which others would ask for more."""
    display = types.ModuleType("IPython.display")
    display.HTML, display.display = str, lambda *_: None
    sys.modules[display.__name__] = display


def run_cells(notebook):
    """Run the code of a notebook.

    Parameters
    ----------
    notebook : path

    Returns
    -------
    names : dict
        What the cells have defined.
    failed : list of str
        The errors of cells.
    """
    names, failed = {"__name__": "__main__"}, []
    cells = json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for number, source in enumerate(sources, start=1):
        name = f"<{Path(notebook).stem}, code cell {number}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)  # for tracebacks
        try:
            exec(compile(source, name, "exec"), names)
        except Exception as error:
            failed.append(f"{type(error).__name__}: {error}")
    return names, failed


def main(page, path):
    import matplotlib

    matplotlib.use("Agg")
    if not find_spec("IPython"):
        stand_in_for_ipython()
    sys.path[:0] = [str(ROOT), str(ROOT / "book")]
    began = time.perf_counter()
    names, failed = run_cells(NOTEBOOKS / f"{page}.ipynb")
    found = {"measured": names.get("noted"), "setting": names.get("setting"), "failed": failed}
    if "machine" in names:
        found["machine"] = dataclasses.asdict(names["machine"])
    found["seconds"] = round(time.perf_counter() - began, 1)
    Path(path).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
