# SPDX-License-Identifier: Apache-2.0
"""A Triton solution as bench/mutant_kinds.py sees it: syntax tree with spans, what a kernel's names are for, sizes that the host passes.

Nothing is executed. Host values come from a small evaluator of integer expressions, which knows the shapes that get_inputs() names.
"""
import ast
import re

REDUCTIONS = {"sum", "max", "min", "cumsum", "cumprod", "dot", "argmax", "argmin", "reduce", "associative_scan"}
MEMORY = {"load", "store", "atomic_add", "atomic_max", "atomic_min"}
NO_SIZE = re.compile(r"eps|slope|scale|alpha|beta|stride|^s[abc][mnk]$|unused")
FACTORIES = {"randn", "rand", "zeros", "ones", "empty", "randint"}


def called(node):
    """`exp` of tl.exp(...), "" of anything that is not such a call."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr
    return ""


def of_triton(node, names):
    return called(node) in names and isinstance(node.func.value, ast.Name) and node.func.value.id == "tl"


def is_number(node, kind=(int, float)):
    return isinstance(node, ast.Constant) and isinstance(node.value, kind) and not isinstance(node.value, bool)


def argument(call, name, position):
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    return call.args[position] if position < len(call.args) else None


def names_in(node):
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}


class Kernel:
    """One @triton.jit function and what its names are for."""

    def __init__(self, node):
        self.node = node
        arguments = node.args.args
        self.constants = [a.arg for a in arguments if a.annotation is not None and "constexpr" in ast.dump(a.annotation)]
        others = [a.arg for a in arguments if a.arg not in self.constants]
        self.pointers = [name for name in others if "ptr" in name or name.endswith("desc")]
        self.memory = [call for call in ast.walk(node) if of_triton(call, MEMORY)]
        helper = not self.memory
        self.sizes = [] if helper else [n for n in others if n not in self.pointers and not NO_SIZE.search(n)]
        self.reduces = any(of_triton(call, REDUCTIONS) for call in ast.walk(node))
        self.addresses = [call.args[0] for call in self.memory if call.args]
        self.masks = []
        for call in self.memory:
            mask = argument(call, "mask", 1 if called(call) == "load" else 2)
            if mask is not None:
                self.masks.append((call, mask))
        self.plumbing_names = self.behind(self.addresses + [mask for _, mask in self.masks])
        self.address_names = self.behind(self.addresses)
        self.mask_names = self.behind([mask for _, mask in self.masks])
        self.masks_again = any(of_triton(n, {"where"}) and names_in(n.args[0]) & self.mask_names for n in ast.walk(node))

    def assignments(self):
        return [n for n in ast.walk(self.node) if isinstance(n, (ast.Assign, ast.AugAssign))]

    def behind(self, nodes):
        """Names from which these expressions are computed."""
        found = set().union(*map(names_in, nodes)) if nodes else set()
        while True:
            more = set(found)
            for statement in self.assignments():
                target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
                if names_in(target) & found:
                    more |= names_in(statement.value)
            if more == found:
                return found - {"tl"}
            found = more


class Program:
    """A solution beside its task. All offsets are into `text`, which must be ASCII."""

    def __init__(self, text, task):
        self.text, self.task = text, task
        self.tree = ast.parse(text)
        self.starts = [0]
        for line in text.split("\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.parent = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        functions = [n for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef)]
        self.kernels = [Kernel(f) for f in functions if any("jit" in ast.dump(d) for d in f.decorator_list)]
        self.forward = next(f for f in functions if f.name == "forward" and getattr(self.parent[f], "name", "") == "ModelNew")
        self.launches = [n for n in ast.walk(self.tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Subscript)
                         and isinstance(n.func.value, ast.Name) and n.func.value.id in {k.node.name for k in self.kernels}]
        self.constants = task_sizes(task)
        self.env = {}
        self.read_host()

    def span(self, node):
        return (self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset)

    def source(self, node):
        start, end = self.span(node)
        return self.text[start:end]

    def put(self, node, text):
        """One edit, and its note."""
        start, end = self.span(node)
        note = f"line {node.lineno}: {shown(self.text[start:end])} -> {shown(text)}"
        if end - start < 20:
            line = self.text[self.starts[node.lineno - 1]:self.starts[node.lineno] - 1]
            note += f" in {shown(line)}"
        return [(start, end, text)], note

    def atom(self, node):
        """Its text, in parentheses where it needs them to stand anywhere."""
        text = self.source(node)
        return text if isinstance(node, (ast.Name, ast.Call, ast.Subscript, ast.Attribute)) or is_number(node) else f"({text})"

    def is_minus_infinity(self, node):
        return self.source(node).replace("'", '"').replace(" ", "") in ('-float("inf")', 'float("-inf")')

    def statement(self, node):
        while not isinstance(node, ast.stmt):
            node = self.parent[node]
        return node

    def inside(self, node, others):
        while node is not None:
            if node in others:
                return True
            node = self.parent.get(node)
        return False

    def is_value(self, kernel, node):
        """Does this expression compute what ends in memory, rather than where it lies or whether it is written?"""
        child, up = node, self.parent[node]
        while not isinstance(child, ast.stmt):
            if isinstance(up, ast.Call):
                name = called(up)
                if isinstance(up.func, ast.Name) and up.func.id == "range":
                    return False
                if name in ("arange", "program_id", "zeros", "full", "load", "zeros_like", "make_block_ptr", "advance"):
                    return False
                if name in MEMORY and (len(up.args) < 2 or child is not up.args[1]):
                    return False
                if name == "where" and child is up.args[0]:
                    return False
            if isinstance(up, (ast.Compare, ast.Subscript)):
                return False
            child, up = up, self.parent.get(up)
        if isinstance(child, ast.Assign):
            return not names_in(child.targets[0]) & kernel.plumbing_names
        if isinstance(child, ast.AugAssign):
            return not names_in(child.target) & kernel.plumbing_names
        return isinstance(child, ast.Return) or (isinstance(child, ast.Expr) and called(child.value) in MEMORY)

    # --- Host values: what sizes a launch gets at the task's own shapes.

    def read_host(self):
        shapes = input_shapes(self.task, self.constants)
        for name, shape in zip([a.arg for a in self.forward.args.args][1:], shapes):
            if shape is not None:
                self.env[name] = shape
        for statement in self.forward.body:
            if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                continue
            value = self.value(statement.value)
            if value is not None:
                self.bind(statement.targets[0], value)

    def bind(self, target, value):
        if isinstance(target, ast.Name):
            self.env[target.id] = value
        elif isinstance(target, ast.Tuple) and isinstance(value, tuple) and len(target.elts) == len(value):
            for element, part in zip(target.elts, value):
                self.bind(element, part)

    def value(self, node):
        """Integer, tuple of values, or a tensor as the tuple of its sizes; None where unknown."""
        if is_number(node, int):
            return node.value
        if isinstance(node, ast.Name):
            found = self.env.get(node.id)
            return self.constants.get(node.id) if found is None else found
        if isinstance(node, (ast.Tuple, ast.List)):
            values = tuple(self.value(element) for element in node.elts)
            return None if None in values else values
        if isinstance(node, ast.Attribute) and node.attr == "shape":
            found = self.value(node.value)
            return found if isinstance(found, tuple) else None
        if isinstance(node, ast.Subscript) and is_number(node.slice, int):
            found = self.value(node.value)
            return found[node.slice.value] if isinstance(found, tuple) and node.slice.value < len(found) else None
        if isinstance(node, ast.BinOp):
            left, right = self.value(node.left), self.value(node.right)
            if not isinstance(left, int) or not isinstance(right, int):
                return None
            operations = {ast.Add: lambda: left + right, ast.Sub: lambda: left - right, ast.Mult: lambda: left * right,
                          ast.FloorDiv: lambda: left // right if right else None}
            return operations.get(type(node.op), lambda: None)()
        name = called(node)
        if name in ("numel", "stride", "size", "contiguous", "new_empty", "clone"):
            base = self.value(node.func.value)
            arguments = [self.value(a) for a in node.args]
            if not isinstance(base, tuple) or None in arguments:
                return None
            if name == "new_empty":
                return arguments[0] if arguments and isinstance(arguments[0], tuple) else None
            if name in ("contiguous", "clone"):
                return base
            if name == "numel":
                return product(base)
            if len(arguments) != 1 or not 0 <= arguments[0] < len(base):
                return None
            return product(base[arguments[0] + 1:]) if name == "stride" else base[arguments[0]]
        if name in ("empty", "zeros", "empty_like", "zeros_like") and node.args:
            found = self.value(node.args[0])
            return found if isinstance(found, tuple) else None
        if name in ("cdiv", "next_power_of_2"):
            arguments = [self.value(a) for a in node.args]
            if not all(isinstance(a, int) and a > 0 for a in arguments):
                return None
            return -(-arguments[0] // arguments[1]) if name == "cdiv" else 1 << (arguments[0] - 1).bit_length()
        return None

    def launch_arguments(self, launch):
        """[(parameter, expression)] of one launch."""
        kernel = next(k for k in self.kernels if k.node.name == launch.func.value.id)
        parameters = [a.arg for a in kernel.node.args.args]
        return kernel, list(zip(parameters, launch.args)) + [(k.arg, k.value) for k in launch.keywords if k.arg in parameters]

    def grid_parts(self, launch):
        grid = launch.func.slice
        if isinstance(grid, ast.Name):
            for statement in ast.walk(self.forward):
                if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) and statement.targets[0].id == grid.id:
                    grid = statement.value
        if isinstance(grid, ast.Lambda):
            grid = grid.body
        return grid.elts if isinstance(grid, ast.Tuple) else [grid]


def shown(text):
    text = " ".join(text.split())
    return f"`{text}`" if len(text) <= 90 else f"`{text[:87]}...`"


def product(numbers):
    total = 1
    for number in numbers:
        total *= number
    return total


def task_sizes(task):
    return {name: int(value) for name, value in re.findall(r"^([A-Z][A-Z0-9_]*) = (\d+)$", task, flags=re.M)}


def input_shapes(task, constants):
    """Shapes of what get_inputs() returns, None where it is not a plain factory call."""
    function = next(n for n in ast.walk(ast.parse(task)) if isinstance(n, ast.FunctionDef) and n.name == "get_inputs")
    returned = next(n.value for n in ast.walk(function) if isinstance(n, ast.Return))

    def number(node):
        return node.value if is_number(node, int) else constants.get(node.id) if isinstance(node, ast.Name) else None

    shapes = []
    for element in returned.elts:
        call = next((n for n in ast.walk(element) if called(n) in FACTORIES), None)
        sizes = [] if call is None else call.args
        tuples = [a for a in sizes if isinstance(a, (ast.Tuple, ast.List))]
        shape = tuple(number(n) for n in (tuples[0].elts if tuples else sizes))
        shapes.append(shape if shape and None not in shape else None)
    return shapes


def apply(text, edits):
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text
