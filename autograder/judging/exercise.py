"""What an exercise is, and where to find one.

An exercise is declared once, in `autograder/cases/<chapter>.py`:

    patch_count = Exercise(chapter.patch_count, points=2, difficulty=1, minutes=5, section="Crop or pad")

    @patch_count.visible
    def small():
        "A picture that divides"
        yield Case(32, 48, 16)

    @patch_count.hidden(weight=2)
    def any_size(rng):
        "Sides that P does not divide"
        yield Case(*rng.integers(32, 64, size=2), 16)

    @patch_count.misconception("rounding")
    def rounding(H, W, P):
        "You rounded to the nearest whole patch; a patch that is not whole is dropped."
        return round(H / P) * round(W / P)
"""

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from autograder.course import CASES, HEAVY, SOLUTIONS


def _chapters() -> Iterator[tuple[str, str]]:
    """The chapters that have cases, each with the address of its page: their `PAGE`, or else the chapter's name."""
    for path in sorted(CASES.glob("[!_]*.py")):
        page = re.search(r'^PAGE = "(.+)"', path.read_text(encoding="utf-8"), re.MULTILINE)
        yield path.stem, page[1] if page else path.stem


CHAPTERS = dict(_chapters())


def heavy(chapter: str) -> list[str]:
    """The packages that a chapter's code imports and that are not always there."""
    text = "".join((folder / f"{chapter}.py").read_text(encoding="utf-8") for folder in (SOLUTIONS, CASES))
    return [package for package in HEAVY if re.search(rf"^ *(?:import|from) {package}\b", text, re.MULTILINE)]


class Case:
    """One call whose answer is the reference's.

    Parameters
    ----------
    *args, **kwargs
        The arguments of the call.
    why : str, optional
        What this case can see that others cannot, for the failure's message and the next author.
    """

    def __init__(self, *args: Any, why: str = "", **kwargs: Any) -> None:
        self.args, self.kwargs, self.why = args, kwargs, why
        self.answers: dict[Any, Any] = {}  # what our own functions answer, once they were asked
        self.single: float | None = None  # the tolerance for an answer in single precision, once it was asked for


class Raises(Case):
    """One call that must raise. With `naming`, that word must stand in the exception's text."""

    def __init__(self, *args: Any, naming: str = "", why: str = "", **kwargs: Any) -> None:
        super().__init__(*args, why=why, **kwargs)
        self.naming = naming


Draw = Callable[..., Iterator[Case]]  # of () or of (rng)


@dataclass(frozen=True)
class Subtest:
    """Cases that count together: passed when each of them is."""

    name: str
    title: str
    draw: Draw
    weight: float
    hidden: bool


@dataclass(frozen=True)
class Misconception:
    """A wrong implementation that people really write, with its explanation."""

    name: str
    explanation: str
    function: Callable[..., Any]


@dataclass
class Exercise:
    """A function to write, with all that its grading needs.

    Parameters
    ----------
    reference : function
        The solution, from `solutions.<chapter>`; it gives the exercise its name and its chapter.
    points : float
        Full marks.
    difficulty : int
        1 to 3.
    minutes : int
        "Up to about so many minutes."
    section : str
        Heading of the section of the chapter's page that explains it.
    tolerance : float
        Absolute and relative, for float64 answers.
    single : float
        The same for answers in single precision, where it is not enough to ask the reference what that can do.
    returns : str
        What the function returns, in words, where that is no array.
    formerly : tuple of str
        Names that it had before. Notebooks with such a name are graded all the same, and grades under it are kept.
    formerly_in : str
        The chapter that it was in before. A notebook of that chapter that was released then is graded with it.
    """

    reference: Callable[..., Any]
    points: float
    difficulty: int
    minutes: int
    section: str
    tolerance: float = 1e-9
    single: float = 0.0
    returns: str = ""
    formerly: tuple[str, ...] = ()
    formerly_in: str = ""
    subtests: list[Subtest] = field(default_factory=list)
    misconceptions: list[Misconception] = field(default_factory=list)
    label: Callable[..., str] | None = None  # (index, *args) -> words for one entry of the answer

    @property
    def name(self) -> str:
        return self.reference.__name__

    @property
    def chapter(self) -> str:
        return self.reference.__module__.rpartition(".")[2]

    @property
    def anchor(self) -> str:
        """The label of its section on the page: the heading in lower case, hyphenated."""
        return re.sub(r"[^a-z0-9]+", "-", self.section.lower()).strip("-")

    @property
    def dots(self) -> str:
        """The difficulty as a learner sees it: ●●○."""
        return "●" * self.difficulty + "○" * (3 - self.difficulty)

    @property
    def worth(self) -> str:
        """The points in words."""
        return f"{self.points:g} point" + ("" if self.points == 1 else "s")

    @property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.reference)

    def visible(self, function: Draw | None = None, *, weight: float = 1.0) -> Any:
        """Declare a sub-test that the learner sees: a generator of cases, fixed and small."""
        return self._subtest(function, weight, hidden=False)

    def hidden(self, function: Draw | None = None, *, weight: float = 1.0) -> Any:
        """Declare a sub-test for the official grade: a generator of cases drawn from `rng`."""
        return self._subtest(function, weight, hidden=True)

    def _subtest(self, function: Draw | None, weight: float, hidden: bool) -> Any:
        def declare(draw: Draw) -> Draw:
            assert draw.__doc__, f"{draw.__name__} has no docstring, which is its title"
            title = inspect.cleandoc(draw.__doc__)
            self.subtests.append(Subtest(draw.__name__, title, draw, float(weight), hidden))
            return draw

        return declare if function is None else declare(function)

    def misconception(self, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare a wrong implementation; its docstring tells the learner what went wrong."""

        def declare(function: Callable[..., Any]) -> Callable[..., Any]:
            assert function.__doc__, f"{function.__name__} has no docstring, which tells the learner what went wrong"
            explanation = " ".join(function.__doc__.split())
            self.misconceptions.append(Misconception(name, explanation, function))
            return function

        return declare

    def where(self, function: Callable[..., str]) -> Callable[..., str]:
        """Declare `function(index, *args)`: words for one entry of the answer, for messages."""
        self.label = function
        return function


def exercises(chapter: str) -> list[Exercise]:
    """The exercises of a chapter, in the order of their declaration."""
    module = importlib.import_module(f"autograder.cases.{chapter}")
    return [value for value in vars(module).values() if isinstance(value, Exercise)]


@functools.cache
def names() -> dict[str, str]:
    """Every exercise's name with its chapter, without importing the chapters (one may need a heavy package)."""
    return {name: chapter for chapter in CHAPTERS for name in _declared(chapter)}


def former_names() -> dict[str, str]:
    """Every name that an exercise had before, with its name of today."""
    return {
        old: name
        for chapter in CHAPTERS
        for name, declared in _declared(chapter).items()
        for old in declared.get("formerly", ())
    }


def moved_from(chapter: str) -> dict[str, str]:
    """The exercises that a chapter had before, each with its chapter of today."""
    return {
        name: today
        for today in CHAPTERS
        for name, declared in _declared(today).items()
        if declared.get("formerly_in") == chapter
    }


@functools.cache
def _text(chapter: str) -> str:
    return (CASES / f"{chapter}.py").read_text(encoding="utf-8")


@functools.cache
def _declared(chapter: str) -> dict[str, dict[str, Any]]:
    """The exercises that a chapter's cases declare, each with what its declaration says of before."""
    return {
        target.id: {
            keyword.arg: ast.literal_eval(keyword.value)
            for keyword in call.keywords
            if keyword.arg in ("formerly", "formerly_in")
        }
        for statement in ast.parse(_text(chapter)).body
        if isinstance(statement, ast.Assign) and isinstance(call := statement.value, ast.Call)
        if isinstance(call.func, ast.Name) and call.func.id == "Exercise"
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


def find(name: str) -> Exercise:
    """The exercise of that name.

    Raises
    ------
    KeyError
        If there is none.
    """
    for chapter in CHAPTERS:  # the first check of a session reads no chapter that does not have the word
        if name in _text(chapter) and name in _declared(chapter):
            exercise: Exercise = getattr(importlib.import_module(f"autograder.cases.{chapter}"), name)
            return exercise
    raise KeyError(name)
