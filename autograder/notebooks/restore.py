"""Putting a submitted notebook back into a form that nbgrader takes and that is safe to open."""

from autograder import clean
from autograder.notebooks.read import grade_id_of, source_of


def restored(submission, released, printed):
    """A notebook that nbgrader takes: the learner's cells without their outputs, the checks as they were released.

    It is safe to open: of a cell only its source is kept, and text that was not released is cleaned.

    Parameters
    ----------
    submission : Submission or None
        None where the notebook could not be read: the released notebook alone.
    released : dict
        The exercise notebook.
    printed : dict
        Name of an exercise -> what its check prints.

    Returns
    -------
    dict
        A notebook of nbformat 4.5.
    """
    theirs = {grade_id_of(cell): cell for cell in released["cells"] if grade_id_of(cell)}
    checks = {grade_id: source_of(cell).strip() for grade_id, cell in theirs.items() if grade_id.startswith("check_")}
    homes = {} if submission is None else submission.homes
    texts = {source_of(cell).strip() for cell in released["cells"]}
    solution_at = {}  # a cell that holds several functions can go by one name only
    for name, number in homes.items():
        if name in theirs:
            solution_at.setdefault(number, name)
    cells, after = [], {}
    for number, cell in enumerate(submission.cells if submission else []):
        check = next((c for c in checks if cell.grade_id == c or cell.source.strip() == checks[c]), None)
        if number in solution_at:
            name = solution_at[number]
            cells.append(_cell("code", clean.code(cell.source), name, theirs[name]["metadata"]))
            after.update({name: len(cells) for name in homes if homes[name] == number})
        elif check:
            if check not in after:
                cells.append(check)
                after[check] = len(cells)
        else:
            source = cell.source
            if source.strip() not in texts:
                source = clean.code(source) if cell.kind == "code" else clean.markdown(source)
            cells.append(_cell(cell.kind, source, f"cell-{number}", {}))
    if submission is None:
        cells = [_cell(c["cell_type"], source_of(c), c["id"], c["metadata"]) for c in released["cells"]]
        after = dict.fromkeys(checks)
    # A check that is missing goes after its function, or to the end; from the end, so that the places stay right.
    missing = [check for check in checks if check not in after]
    for check in sorted(missing, key=lambda check: after.get(check.removeprefix("check_"), len(cells)), reverse=True):
        cells.insert(after.get(check.removeprefix("check_"), len(cells)), check)
    cells = [_check(theirs[c], printed.get(c.removeprefix("check_"))) if isinstance(c, str) else c for c in cells]
    return {"cells": cells, "metadata": released["metadata"], "nbformat": 4, "nbformat_minor": 5}


def _cell(kind, source, cell_id, metadata):
    cell = {"cell_type": kind, "id": cell_id, "metadata": metadata, "source": source}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def _check(released, printed):
    cell = _cell("code", source_of(released), released["id"], released["metadata"])
    if printed:
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": printed}]
    return cell
