"""Mutants: a solution with one small thing changed, to find what the cases of its exercise cannot see.

The changes are mutmut's: an operator exchanged, a number one higher, an argument left out or None, a string in other
letters, an assignment of None. A mutant that gets full marks is a mistake that a learner could make unseen.
"""

import ast
import contextlib
import dataclasses
import difflib
import functools
import inspect
import signal
import tomllib

import libcst as cst
from mutmut.mutation.mutators import mutation_operators

from autograder.course import CASES
from autograder.judging.judge import judge
from autograder.notebooks.solution import exercise_texts
from autograder.sandbox.inside.calls import run

SPARED = CASES / "spared.toml"
SECONDS = 5  # of processor time for a mutant, which may never end


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A changed solution.

    Attributes
    ----------
    before, after : str
        The lines that differ, without indentation.
    code : str
        The whole function.
    """

    before: str
    after: str
    code: str


class _Nodes(cst.CSTVisitor):
    """What may be changed. The words of an error are no part of an exercise: what is raised stays as it is, and so do
    the names of parameters, written as strings to be put into those words."""

    def __init__(self, parameters):
        self.parameters, self.found = parameters, []

    def on_visit(self, node):
        if isinstance(node, cst.Raise) or (
            isinstance(node, cst.SimpleString) and node.evaluated_value in self.parameters
        ):
            return False
        self.found.append(node)
        return True


def mutants(exercise):
    """The mutants of an exercise's solution, in the order of its lines.

    Parameters
    ----------
    exercise : Exercise

    Yields
    ------
    Mutant
    """
    code = exercise_texts(exercise.chapter)[exercise.name].solution
    module = cst.MetadataWrapper(cst.parse_module(code)).module  # in which no node stands twice
    function = next(node for node in module.body if isinstance(node, cst.FunctionDef))
    nodes, seen = _Nodes(exercise.signature.parameters), {ast.dump(ast.parse(code))}
    for statement in function.body.body[1:]:  # without the docstring
        statement.visit(nodes)
    for node in nodes.found:
        for kind, mutate in mutation_operators:
            for changed in mutate(node) if isinstance(node, kind) else ():
                mutated = module.deep_replace(node, changed).code
                with contextlib.suppress(SyntaxError):
                    tree = ast.dump(ast.parse(mutated))
                    if tree not in seen:
                        seen.add(tree)
                        yield Mutant(*_changed_lines(code, mutated), mutated)


def _changed_lines(code, mutated):
    """The lines that differ, before and after."""
    old, new = code.splitlines(), mutated.splitlines()
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    (_, first, _, start, _), (_, _, last, _, end) = changes[0], changes[-1]
    return tuple("\n".join(line.strip() for line in lines) for lines in (old[first:last], new[start:end]))


def survivors(exercise, seeds=(0, 1)):
    """The mutants that get full marks with each of the seeds.

    Parameters
    ----------
    exercise : Exercise
    seeds : sequence of int
        What the hidden cases are drawn from.

    Yields
    ------
    Mutant
    """
    unexplained = dataclasses.replace(exercise, misconceptions=[])  # a mistake need not be named here
    for mutant in mutants(exercise):
        space = dict(vars(inspect.getmodule(exercise.reference)))
        exec(compile(mutant.code, "<mutant>", "exec"), space)
        call = functools.partial(run, space[exercise.name])
        with contextlib.suppress(_Endless), _time_limit():
            if all(judge(unexplained, call, hidden=True, seed=seed).passed for seed in seeds):
                yield mutant


def spared(exercise):
    """The mutants that may survive, by what they change: (before, after) -> why (spared.toml)."""
    if not SPARED.exists():  # a course may need none
        return {}
    entries = tomllib.loads(SPARED.read_text(encoding="utf-8")).get(exercise.name, [])
    return {(entry["line"], after): entry["why"] for entry in entries for after in entry["becomes"]}


def holes(exercise):
    """What the cases of an exercise cannot see.

    Returns
    -------
    unseen : list of (str, str)
        What a mutant changes, before and after, if it survives and is not spared.
    idle : list of (str, str)
        The same of what is spared and does not survive.
    """
    alive, kept = [(mutant.before, mutant.after) for mutant in survivors(exercise)], spared(exercise)
    return [change for change in alive if change not in kept], [change for change in kept if change not in alive]


class _Endless(KeyboardInterrupt):
    """The time is up. Of all exceptions only a KeyboardInterrupt is not taken for the function's answer."""


@contextlib.contextmanager
def _time_limit():
    def stop(number, frame):
        raise _Endless

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
