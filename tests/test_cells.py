"""What Python is given of a notebook cell."""

import ast
import time

import pytest

from autograder.sandbox.inside import cells
from autograder.sandbox.inside.cells import python


@pytest.mark.parametrize(
    ("source", "code", "left_out"),
    [
        ("x = 1", "x = 1", ""),
        ("%matplotlib inline\n!ls\n?print\nprint?\nx = 1", "pass\npass\npass\npass\nx = 1", "4 lines"),
        ("files = !ls\na, b = %who", "files = None\na, b = None", "2 lines"),
        ("%time f = lambda x: 2 * x", "f = lambda x: 2 * x", "1 line"),
        ("!pip install a \\\n    b\nx = 1", "pass\npass\nx = 1", "2 lines"),
        ("if True:\n    %load_ext x\n    y = 1", "if True:\n    pass\n    y = 1", "1 line"),
        ("%%time\nx = 1", "\nx = 1", "1 line"),
        ("%%bash\nls -l", "", "a cell"),
        # Python of which each line by itself looks like a magic: in a string, in brackets, after a line that goes on.
        ("t = '''\n%d\n!ls\n'''\n%who", "t = '''\n%d\n!ls\n'''\npass", "1 line"),
        ('t = """it\'s\n%d"""\n%who', 't = """it\'s\n%d"""\npass', "1 line"),
        ("y = (7\n% 4)\n%who", "y = (7\n% 4)\npass", "1 line"),
        ("y = 7 \\\n% 4\n%who", "y = 7 \\\n% 4\npass", "1 line"),
        ("x = 1  # really?\n%who", "x = 1  # really?\npass", "1 line"),
        # Quotes and brackets of a shell line are the shell's.
        ("!echo \"it's ( '''\nx = 1\n%who", "pass\nx = 1\npass", "2 lines"),
        ("What is this?\nx = 1", "pass\nx = 1", "1 line"),
        ("\ufeffx = 1\r\ny = 2\r%who", "x = 1\ny = 2\npass", "1 line"),
    ],
)
def test_magic_is_left_out_and_python_stays(source, code, left_out):
    found, tree, error, told = python(source)
    assert (found, error, told) == (code, "", left_out)
    assert tree is not None


@pytest.mark.parametrize("source", ["this is no Python", "f(", "'''\n!ls", "[\n%who\n]", "x = 1\0", "(" * 300])
def test_what_is_no_python_has_a_reason(source):
    _, tree, error, _ = python(source)
    assert tree is None and error


@pytest.mark.parametrize(
    "source",
    [
        "!ls\n" * 5000,
        "Why is that so?\n" * 5000,
        "[\n%who\n]\n" * 5000,
        "'" * 100_000 + "\n!ls",
        "'\\" * 100_000 + "\n!ls",
        "x = " + " " * 250_000 + "\n!ls",
    ],
)
def test_a_long_cell_takes_no_longer_than_its_length(source):
    start = time.process_time()
    python(source)
    assert time.process_time() - start < 2  # with a reading of the cell for each line the first took 10 s


@pytest.mark.parametrize(
    ("text", "readings"),
    [("a" * 100, 20), ("a" * 20_000, 5), ("a" * 60_000, 3), ("{1}" * 30, 20), ("{1}" * 800, 4), ("{1}" * 6000, 2)],
)
def test_how_often_a_cell_is_read(monkeypatch, text, readings):
    """A small one until all its magics are out; a large one seldom, for of some Python takes seconds."""
    lengths = []
    monkeypatch.setattr(cells, "parse", lambda code: lengths.append(len(code)) or ast.parse(code))
    _, tree, _, left_out = python(f"f'{text}'\n" + "is it so?\n" * 30)
    assert tree is None and left_out
    assert len(lengths) == readings


def nasty(size):
    """Sources of which Python 3.11 takes seconds or minutes at a size that a notebook may have."""
    marks = "a" + "\u0315\u0300\u05ae\u0301" * (size // 8)  # a name: put in order two by two
    fields = "{1}" * (size // 3)  # each is looked for in the whole string
    yield from (f"{marks} = 1", f"x.{marks}", f"f'{fields}'", f"rF'''{fields}\n'''", f'Fr"{fields}" b c')
    yield from (f"'a' f'{fields}'", f'\'it\\\'s\' # f\'\nf"""{fields}"""', f"f'{fields}", f"f'''\\'''{fields}")
    yield from ("f'" + "{a:{b}}" * (size // 7) + "'", f"f'{fields}'\n" + "is it so?\n" * 30)
    yield f"!ls\nf'{fields}'\n" + "is it so?\n" * 30


@pytest.mark.parametrize("number", range(12))
def test_what_python_reads_slowly_is_refused_at_once(number):
    source = [*nasty(250_000)][number]
    start = time.process_time()
    _, tree, error, _ = python(source)
    assert time.process_time() - start < 1
    assert tree is None
    assert "the grader does not read them" in error or "invalid syntax" in error or "unterminated" in error


@pytest.mark.parametrize(
    "source",
    [
        *nasty(1000),
        "x = '" + "{1}" * 80_000 + "'  # f'it",  # no f-string: data
        "t = ''' f'" + "{1}" * 80_000 + "'''",
        "\n".join(f"print(f'{{a[{n}]:.2f}} of {{b}}')" for n in range(5000)),
        "f'''" + "p {{ margin: {m} }}\n" * 300 + "'''",
        "# " + "\u4e00" * 900,
    ],
)
def test_what_a_notebook_may_hold_is_read(source):
    try:
        ast.parse(source)
    except SyntaxError as error:
        assert python(source)[1] is not None or error.msg in python(source)[2]
    else:
        assert python(source)[1] is not None


@pytest.mark.parametrize("slashes", ["'''\\", "\\'''", '\\"""', "'\\\n", "f'", "f'''\\"])
def test_looking_for_strings_takes_no_longer_than_the_source(slashes):
    start = time.process_time()
    python(slashes * (120_000 // len(slashes)) + "f'" + "{1}" * 40_000)
    assert time.process_time() - start < 2
