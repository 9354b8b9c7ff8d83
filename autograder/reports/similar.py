"""Pairs of submissions that are nearly the same: a place to look, and never a verdict.

Compared are the bodies of the exercises' functions, without docstrings, as sets of token sequences in which names of
one's own do not count. What stands in the stub or in the reference solution says nothing and is left out. The rest
is weighed by how rare it is in the class: a sequence that k of n students have weighs log2((n + 1) / 2k) bits. What
half of the class writes weighs nothing, and a strange line that two share weighs most. Two submissions are as similar
as the weight of what they share is of the weight of all that either has. In a class of three nothing is rare.
"""

import ast
import builtins
import io
import keyword
import tokenize
from collections import Counter
from difflib import SequenceMatcher
from hashlib import blake2b

import numpy as np
from scipy.sparse import csr_array

from autograder import clean
from autograder.course import HEAVY
from autograder.grading.classroom import CommandError
from autograder.grading.grade import fault
from autograder.judging.exercise import CHAPTERS
from autograder.notebooks.read import NotReadable, bindings, bounded, read
from autograder.notebooks.solution import exercise_texts
from autograder.reports.feedback import page
from autograder.sandbox.inside.cells import is_stub, parse

LENGTH = 5  # tokens in a sequence
LEAST = 80.0  # bits that a pair must share: less is what two short answers share by chance
MOST = 100  # pairs that are shown
KEPT_PAIRS = 10_000  # that are listed, of a chapter
AT_ONCE = 1 << 22  # pairs that are reckoned at a time
MOST_LINES = 1000  # of a function on the page
MOST_ROWS = 50_000  # on the page, after which no further pair is shown: lining them up takes a minute at worst
KEPT = {*keyword.kwlist, *dir(builtins), "np", "numpy", "scipy", *HEAVY}  # names that say what is done
SKIPPED = {tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING}


def similar(classroom, threshold=0.5, assignment=None):
    """The pairs of a class, most similar first.

    Parameters
    ----------
    classroom : Classroom
        Graded: compared is what lies in `autograded/`.
    threshold : float
        From 0 to 1: pairs below it are left out.
    assignment : str, optional
        Only this one.

    Returns
    -------
    pairs : list of dict
        `assignment`, `students` (two), `similarity` (0 to 1), `bits` (shared), and `passages`: for each exercise in
        which they share something its `name`, `bits`, and the `sources` of the two functions.
    left_out : int
        How many pairs there are besides: of a chapter, 10,000 are kept.

    Raises
    ------
    CommandError
        Nothing has been graded.
    """
    pairs, left_out, graded = [], 0, False
    for chapter in [assignment] if assignment else CHAPTERS:
        works = _works(classroom.folder("autograded"), chapter)
        graded = graded or bool(works)
        found, more = _pairs(chapter, works, threshold)
        pairs, left_out = pairs + found, left_out + more
    if not graded:
        raise CommandError(f"nothing has been graded yet{f' for {assignment}' if assignment else ''}")
    return sorted(pairs, key=lambda pair: (-pair["similarity"], -pair["bits"], pair["students"])), left_out


def as_page(pairs, left_out=0):
    """The pairs as an HTML page of its own, passages side by side; it says how many are left out."""
    shown, rows = [], 0
    for pair in pairs[:MOST]:
        if rows >= MOST_ROWS:
            break
        passages = [passage | {"rows": _side_by_side(*passage["sources"])} for passage in pair["passages"]]
        rows += sum(len(passage["rows"]) for passage in passages)
        shown.append(pair | {"passages": passages})
    return page("Similar submissions", "similar.html", pairs=shown, left_out=left_out + len(pairs) - len(shown))


def _works(folder, chapter):
    """Student -> name of an exercise -> the function as it was written."""
    works = {}
    for path in sorted(folder.glob(f"*/{chapter}/{chapter}.ipynb")):
        with open(path, "rb") as file:
            data = bounded(file)
        try:
            submission = read(data, chapter, clean.name(path))
            functions = {
                name: source
                for name in submission.written
                if (source := _function(submission.cells[submission.homes[name]].code, name))
            }
        except NotReadable:  # the learner's was: this is the empty one
            continue
        except Exception as error:  # the others are compared
            clean.say(f"{clean.name(path.parents[1])} is left out: {fault('reading it', error)}", error=True)
            continue
        works[path.parents[1].name] = functions
    return works


def _function(code, name):
    """The source of a function in a cell, or "" where the name is bound to something else.

    It is the last one of that name; none that lies within another function counts.
    """
    found = [node for its_name, node in bindings(parse(code)) if its_name == name and not is_stub(node)]
    nodes = [node for node in found if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    if not nodes:
        return ""
    source = ast.get_source_segment(code, nodes[-1])
    sequences(source)  # what cannot be read so is found here
    return source


def sequences(source):
    """The token sequences of a function's body.

    Names that the function gives are all one name; comments count word by word, the docstring does not.

    Parameters
    ----------
    source : str

    Returns
    -------
    set of tuple
    """
    node = parse(source).body[0]
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    first = body[0].lineno if body else node.end_lineno + 1
    tokens, last = [], ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.start[0] < first or token.type in SKIPPED:
            continue
        if token.type == tokenize.COMMENT:
            tokens += token.string.lstrip("# ").lower().split()
        elif token.type == tokenize.NAME and token.string not in KEPT and last != ".":
            tokens.append("name")
        else:
            tokens.append(token.string)
        last = token.string
    return {tuple(tokens[i : i + LENGTH]) for i in range(max(1, len(tokens) - LENGTH + 1))}


def _pairs(chapter, works, threshold):
    """The pairs of a chapter, at most KEPT_PAIRS and those the most similar, and how many more there are."""
    if len(works) < 2:
        return [], 0
    known = {name: sequences(text.solution) | sequences(text.stub) for name, text in exercise_texts(chapter).items()}
    students = list(works)
    own = [{name: _numbers(name, sequences(text) - known[name]) for name, text in works[s].items()} for s in students]
    lengths = np.cumsum([0, *(sum(map(len, parts.values())) for parts in own)])
    everything = [numbers for parts in own for numbers in parts.values()]
    numbers, columns, counts = np.unique(
        np.concatenate([np.empty(0, np.uint64), *everything]), return_inverse=True, return_counts=True
    )
    weights = np.maximum(0.0, np.log2((len(students) + 1) / (2 * counts)))
    has = csr_array((np.ones(lengths[-1]), columns, lengths), shape=(len(students), len(numbers)))
    has.sort_indices()  # equal answers are added up in the same order: they are equal to the last bit
    found, left_out = _alike(has[:, weights > 0], weights[weights > 0], threshold)
    pairs = []
    for i, j, similarity, shared in found:
        bits = Counter()
        for name in own[i].keys() & own[j].keys():
            both = np.intersect1d(own[i][name], own[j][name], assume_unique=True)
            bits[name] = float(weights[np.searchsorted(numbers, both)].sum())
        pairs.append(
            {
                "assignment": chapter,
                "students": [students[i], students[j]],
                "similarity": similarity,
                "bits": shared,
                "passages": [
                    {"name": name, "bits": its, "sources": [works[students[i]][name], works[students[j]][name]]}
                    for name, its in bits.most_common()
                    if its >= 1
                ],
            }
        )
    return pairs, left_out


def _numbers(name, found):
    """A number of 64 bits for each sequence of an exercise: a large class's sequences themselves take gigabytes."""
    digests = b"".join(blake2b(repr((name, sequence)).encode(), digest_size=8).digest() for sequence in found)
    return np.frombuffer(digests, np.uint64)


def _alike(has, weights, threshold):
    """The most similar pairs as (row, row, similarity, bits), and how many are left out.

    What each shares with each is reckoned for a few students at a time: a class of 100,000 would take 80 GB.
    """
    others, total = has.T.tocsc(), has @ weights
    best, count = np.empty((0, 4)), 0
    at_once = max(1, AT_ONCE // len(total))
    for start in range(0, len(total), at_once):
        some = has[start : start + at_once] * weights
        shared = (some @ others[:, start:]).toarray()
        i, j = np.nonzero(np.triu(shared >= LEAST, 1))
        bits, i, j = shared[i, j], i + start, j + start
        similarity = bits / (total[i] + total[j] - bits)
        enough = similarity >= threshold
        count += np.count_nonzero(enough)
        best = np.concatenate([best, np.stack([i, j, similarity, bits], axis=1)[enough]])
        best = best[np.lexsort((best[:, 1], best[:, 0], -best[:, 3], -best[:, 2]))][:KEPT_PAIRS]
    return [(int(i), int(j), float(s), float(b)) for i, j, s, b in best], count - len(best)


def _side_by_side(left, right):
    """Rows of (left line, right line, whether they are the same but for the spaces)."""
    left, right = (source.splitlines()[:MOST_LINES] for source in (left, right))
    stripped = [["".join(line.split()) for line in lines] for lines in (left, right)]
    rows = []
    # Lines that stand a hundred times over are no place to begin: with them, it would take minutes.
    for tag, i, i_end, j, j_end in SequenceMatcher(None, *stripped).get_opcodes():
        for k in range(max(i_end - i, j_end - j)):
            pair = [lines[at + k] if at + k < end else "" for lines, at, end in ((left, i, i_end), (right, j, j_end))]
            rows.append((*pair, tag == "equal"))
    return rows
