"""The rooms of the engine and who imports whom, read from its code: for the test of the layout and for its drawing."""

import ast
import importlib.util

from autograder.course import ROOT


def modules():
    """The engine's modules: name -> file."""
    paths = (path for path in (ROOT / "autograder").rglob("*.py") if "templates" not in path.parts)
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def imports(name, known):
    """The modules among those that are known that a module imports, those that it imports later, too.

    Parameters
    ----------
    name : str
    known : dict
        Name -> file.
    """
    path, found = known[name], set()
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_bytes())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            source = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            names = [f"{source}.{alias.name}" for alias in node.names]
        found |= {next((n for n in (name, name.rpartition(".")[0]) if n in known), None) for name in names}
    return found - {None}


def way(*roots):
    """What some modules import, and what those import: name -> the names that it imports."""
    known, left, found = modules(), [*roots], {}
    while left:
        name = left.pop()
        if name not in found:
            found[name] = imports(name, known)
            left += found[name]
    return found


def room(name):
    """The room of a module: the folder that it lies in, or itself where it lies in none."""
    parts = name.split(".")[1:]
    return "/".join(parts[:-1]) or parts[0]
