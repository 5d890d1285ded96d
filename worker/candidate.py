# SPDX-License-Identifier: Apache-2.0
# Python text in, module out: how a task's or a candidate's source is loaded, with its size constants rebound.
import ast
import importlib.util
import linecache
import os
import sys

MAX_SIZE = 1 << 31


def size_constants(source):
    """{name: value} of the module-level names that are assigned an integer literal, or a sum, product, ... of such."""
    return {name: integer(node) for name, node in _literals(ast.parse(source))}


def integer(node):
    """The value of an integer expression as data/tasks/shape_variants.h understands it, else None."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if not isinstance(node, ast.BinOp):
        return None
    left, right = integer(node.left), integer(node.right)
    if left is None or right is None or max(abs(left), abs(right)) > MAX_SIZE:
        return None
    if isinstance(node.op, ast.Mult):
        return left * right
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    return left // right if isinstance(node.op, ast.FloorDiv) and right > 0 else None


def _literals(tree):
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            targets, value = statement.targets, statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets, value = [statement.target], statement.value
        else:
            continue
        if isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords:  # tl.constexpr(1024)
            callee = value.func
            if (callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")) == "constexpr":
                value = value.args[0]
        for target in targets:
            for name, node in _pairs(target, value):
                if isinstance(name, ast.Name) and integer(node) is not None:
                    yield name.id, node


def _pairs(target, value):
    """What each name is given: `height, width = 32, 64` gives two."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts))
    return [(target, value)]


def rebind(source, constants, only_equal_to=None):
    """Replaces the literals of module-level size constants in the text; lines stay where they are.

    With `only_equal_to` (the task's own values), a literal is replaced only where it equals the task's.
    """
    if not constants:
        return source
    lines = source.encode().splitlines(keepends=True)
    for name, node in reversed(list(_literals(ast.parse(source)))):
        if name not in constants or node.lineno != node.end_lineno:
            continue
        if only_equal_to is not None and only_equal_to.get(name) != integer(node):
            continue
        line, number = lines[node.lineno - 1], str(int(constants[name])).encode()
        lines[node.lineno - 1] = line[:node.col_offset] + number + line[node.end_col_offset:]
    return b"".join(lines).decode()


def load(source, folder, name):
    """Writes the text to `folder`/candidate.py (Triton reads it back from there), runs it, returns (module, path)."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "candidate.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    linecache.checkcache(path)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    exec(compile(source, path, "exec"), module.__dict__)
    return module, path
