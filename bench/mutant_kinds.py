# SPDX-License-Identifier: Apache-2.0
"""Kinds of faults for bench/make_mutants.py: each finds the places where a correct Triton solution can be spoilt.

A kind is a function that takes a Program (mutant_source.py) and yields (edits, note): `edits` replace spans of the source, [(start, end, text)], and
together are one fault; `note` says what happened, for people. KINDS is all of them, by name.
"""
import ast
import re

from mutant_source import called, argument, is_number, names_in, of_triton


# --- Masks.

def without_mask(p, call):
    kept = [p.source(a) for a in call.args[:1 if called(call) == "load" else 2]]
    kept += [f"{k.arg}={p.source(k.value)}" for k in call.keywords if k.arg not in ("mask", "other")]
    return p.put(call, f"{p.source(call.func)}({', '.join(kept)})")


def mask_removed(p):
    """A load's or store's mask left out, or one condition of it."""
    for kernel in p.kernels:
        for call, mask in kernel.masks:
            if called(call) == "store" or (kernel.reduces and not kernel.masks_again):
                yield without_mask(p, call)
        for node in ast.walk(kernel.node):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
                yield p.put(node, p.atom(node.left))
                if not isinstance(node.left, ast.BinOp):
                    yield p.put(node, p.atom(node.right))


def bounds(p):
    """Comparisons `index < size` of masks."""
    for kernel in p.kernels:
        masks = [mask for _, mask in kernel.masks]
        for node in ast.walk(kernel.node):
            if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], ast.Lt):
                continue
            statement = p.statement(node)
            in_mask = p.inside(node, masks) or (isinstance(statement, ast.Assign) and names_in(statement.targets[0]) & kernel.mask_names)
            if in_mask and names_in(node.comparators[0]) & set(kernel.sizes):
                yield kernel, node


def mask_off_by_one(p):
    """`<` becomes `<=`, or the bound one less."""
    for _, node in bounds(p):
        left, right = p.source(node.left), p.source(node.comparators[0])
        yield p.put(node, f"{left} <= {right}")
        yield p.put(node, f"{left} < {right} - 1")


def mask_wrong_bound(p):
    """The bound of another dimension."""
    for kernel, node in bounds(p):
        if isinstance(node.comparators[0], ast.Name):
            for other in kernel.sizes:
                if other != node.comparators[0].id:
                    yield p.put(node.comparators[0], other)


# --- Addresses.

def is_address(p, kernel, node):
    if p.inside(node, kernel.addresses):
        return True
    statement = p.statement(node)
    if not isinstance(statement, ast.Assign) or any(called(n) == "load" for n in ast.walk(statement)):
        return False
    return bool(names_in(statement.targets[0]) & kernel.address_names) and not any(isinstance(n, ast.Compare) for n in ast.walk(statement))


def stride_wrong(p):
    """A stride dropped, taken from another dimension, or one too large; strides of a launch swapped."""
    for kernel in p.kernels:
        for node in ast.walk(kernel.node):
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult) or not is_address(p, kernel, node):
                continue
            for side, rest in ((node.right, node.left), (node.left, node.right)):
                if isinstance(side, ast.Name) and (side.id in kernel.sizes or "stride" in side.id):
                    yield p.put(node, p.atom(rest))
                    yield p.put(side, f"({side.id} + 1)")
                    for other in kernel.sizes:
                        if other != side.id:
                            yield p.put(side, other)
                    break
    for launch in p.launches:
        strides = [a for a in launch.args if called(a) == "stride"]
        for first, second in zip(strides, strides[1:]):
            if p.source(first.func) == p.source(second.func):
                (one, _), (two, note) = p.put(first, p.source(second)), p.put(second, p.source(first))
                yield one + two, note + " and back"


def index_swap(p):
    """Row and column of the output exchanged, the row reversed, or two outputs exchanged."""
    for kernel in p.kernels:
        for call in kernel.memory:
            if called(call) == "load":
                continue
            address = call.args[0]
            if not isinstance(address, ast.BinOp) or not isinstance(address.op, ast.Add):
                continue
            index, base = address.right, address.left
            if isinstance(base, ast.BinOp) and isinstance(base.op, ast.Add) and isinstance(base.right, ast.BinOp) and isinstance(base.right.op, ast.Mult):
                row, stride = base.right.left, base.right.right
                pointer = p.source(base.left)
                yield p.put(address, f"{pointer} + {p.atom(index)} * {p.atom(stride)} + {p.atom(row)}")
                if isinstance(stride, ast.Name):
                    yield p.put(address, f"{pointer} + {p.atom(row)} * {stride.id} + ({stride.id} - 1 - {p.atom(index)})")
            elif isinstance(index, ast.Name) and index.id in kernel.address_names and "n_elements" in kernel.sizes:
                yield p.put(address, f"{p.source(base)} + (n_elements - 1 - {index.id})")
    returned = next((n.value for n in ast.walk(p.forward) if isinstance(n, ast.Return)), None)
    if isinstance(returned, ast.Tuple) and len(returned.elts) == 2:
        yield p.put(returned, f"{p.source(returned.elts[1])}, {p.source(returned.elts[0])}")


def output_unwritten(p):
    """The last row, tile or element is never written."""
    for launch in p.launches:
        for part in p.grid_parts(launch):
            if not is_number(part) and p.value(part) != 1:
                yield p.put(part, f"{p.atom(part)} - 1")
    for kernel in p.kernels:
        for call, mask in kernel.masks:
            if called(call) != "load":
                for size in kernel.sizes:
                    for compare in (n for n in ast.walk(mask) if isinstance(n, ast.Compare)):
                        if p.source(compare.comparators[0]) == size:
                            yield p.put(mask, f"({p.source(mask)}) & ({p.source(compare.left)} != {size} - 1)")


# --- Numbers.

def scale_changed(p):
    """A factor changed by half a per cent or two, a factor, divisor or addend left out."""
    for kernel in p.kernels:
        for node in ast.walk(kernel.node):
            if not isinstance(node, ast.BinOp) or not p.is_value(kernel, node):
                continue
            for side, rest in ((node.left, node.right), (node.right, node.left)):
                if is_number(side, float) and abs(side.value) > 0.01 and side.value != 0.0:
                    yield p.put(side, repr(side.value * 1.005))
                    yield p.put(side, repr(side.value * 1.02))
                    if isinstance(node.op, (ast.Mult, ast.Add)) or side is node.right:
                        yield p.put(node, p.atom(rest))
            if isinstance(node.op, ast.Div) and isinstance(node.right, ast.Name) and node.right.id in kernel.sizes:
                yield p.put(node, p.atom(node.left))
                yield p.put(node.right, f"({node.right.id} - 1)")


def eps_changed(p):
    """The small constant of a norm left out, a hundred times as large, or a thousandth."""
    for kernel in p.kernels:
        for node in ast.walk(kernel.node):
            if is_number(node, float) and 0 < node.value <= 2e-3:
                for factor in (100.0, 1e-3, 0.0):
                    yield p.put(node, repr(node.value * factor))
            if isinstance(node, ast.Name) and node.id == "eps" and isinstance(node.ctx, ast.Load):
                yield p.put(node, "(100.0 * eps)")
                yield p.put(node, "(0.001 * eps)")
                yield p.put(node, "0.0")


def axis_wrong(p):
    """A reduction over the other axis, a scan from the other end, a row operation over columns."""
    for kernel in p.kernels:
        for node in ast.walk(kernel.node):
            if not of_triton(node, {"sum", "max", "min", "cumsum", "cumprod", "argmax", "argmin"}):
                continue
            axis = argument(node, "axis", 1)
            if is_number(axis, int) and any(k.arg == "keep_dims" for k in node.keywords):
                yield p.put(axis, str(1 - axis.value))
            if called(node) in ("cumsum", "cumprod"):
                reverse = next((k for k in node.keywords if k.arg == "reverse"), None)
                if reverse is None:
                    yield p.put(node, p.source(node)[:-1] + ", reverse=True)")
                else:
                    yield p.put(reverse.value, "False")
    for launch in p.launches:
        kernel, arguments = p.launch_arguments(launch)
        if not kernel.reduces or len(p.kernels) > 2:
            continue
        for _, expression in arguments:
            shape = p.env.get(expression.id) if isinstance(expression, ast.Name) else None
            if isinstance(shape, tuple) and len(shape) == 2 and expression.id in {a.arg for a in p.forward.args.args}:
                yield p.put(expression, f"{expression.id}.t().contiguous()")


def accumulator_precision(p):
    """Sums and what goes into them rounded to half precision."""
    low = ("tl.float16", "tl.bfloat16")
    for kernel in p.kernels:
        for node in ast.walk(kernel.node):
            if of_triton(node, {"dot"}):
                outer = p.parent[node]
                if isinstance(outer, ast.Assign):
                    yield p.put(node, f"{p.source(node)}.to(tl.float16).to(tl.float32)")
                elif isinstance(outer, ast.AugAssign):
                    yield p.put(outer, f"{p.source(outer.target)} = ({p.source(outer.target)} + {p.source(node)}).to(tl.float16).to(tl.float32)")
            elif of_triton(node, {"sum", "cumsum", "cumprod"}) and p.is_value(kernel, node):
                first = node.args[0]
                for dtype in low:
                    yield p.put(first, f"{p.atom(first)}.to({dtype}).to(tl.float32)")
                    yield p.put(node, f"{p.source(node)}.to({dtype}).to(tl.float32)")
            elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and called(node.value) != "dot" and "acc" in names_in(node.target):
                target = p.source(node.target)
                yield p.put(node, f"{target} = ({target} + {p.atom(node.value)}).to(tl.float16).to(tl.float32)")


UNARY = {"exp", "log", "sqrt", "rsqrt", "abs", "sigmoid", "tanh", "sin", "cos", "exp2", "log2", "erf", "floor", "ceil"}


def op_dropped(p):
    """One operation left out."""
    for kernel in p.kernels:
        for node in ast.walk(kernel.node):
            if not isinstance(node, ast.expr) or not p.is_value(kernel, node):
                continue
            if called(node) in UNARY and len(node.args) == 1:
                yield p.put(node, p.atom(node.args[0]))
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not is_number(node.operand) and not p.is_minus_infinity(node):
                yield p.put(node, p.atom(node.operand))
            elif isinstance(node, ast.BinOp) and not is_number(node.left) and not is_number(node.right):
                right = names_in(node.right) - set(kernel.sizes)
                if right or called(node.right):
                    yield p.put(node, p.atom(node.left))
                if isinstance(node.op, (ast.Add, ast.Mult)):
                    yield p.put(node, p.atom(node.right))


def tail_missing(p):
    """Rounding down where it must be up: the grid or a loop leaves the tail out."""
    for node in ast.walk(p.forward):
        if called(node) == "cdiv":
            first, second = map(p.atom, node.args)
            size, block = map(p.value, node.args)
            if isinstance(size, int) and isinstance(block, int) and size >= block:
                yield p.put(node, f"({first} // {second})")
            yield p.put(node, f"max({first} // {second}, 1)")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv) and isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Add):
            yield p.put(node.left, p.source(node.left.left))
    for kernel in p.kernels:
        for node in ast.walk(kernel.node):
            if isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) and node.iter.func.id == "range":
                arguments = node.iter.args
                if len(arguments) == 3:
                    yield p.put(arguments[1], f"{p.atom(arguments[1])} // {p.atom(arguments[2])} * {p.atom(arguments[2])}")
                elif called(arguments[-1]) == "cdiv":
                    yield p.put(arguments[-1], " // ".join(map(p.atom, arguments[-1].args)))


def initial_value(p):
    """A wrong start of an accumulator, or a wrong filler of lanes that a reduction reads."""
    for kernel in p.kernels:
        for node in ast.walk(kernel.node):
            if of_triton(node, {"zeros"}) and isinstance(p.parent[node], ast.Assign):
                yield p.put(node, p.source(node) + " + 1.0")
            if of_triton(node, {"load"}) and kernel.reduces and not kernel.masks_again:
                other = argument(node, "other", 2)
                if other is not None:
                    yield p.put(other, "0.0" if p.is_minus_infinity(other) else "1.0")
            if of_triton(node, {"where"}) and kernel.reduces and isinstance(node.args[0], ast.Name) and node.args[0].id in kernel.mask_names:
                filler = node.args[2]
                if p.is_minus_infinity(filler) or is_number(filler):
                    wrong = "1.0" if is_number(filler) and filler.value == 0 else "0.0"
                    yield p.put(filler, wrong)
            if of_triton(node, {"full"}) and len(node.args) > 1:
                yield p.put(node.args[1], "0.0" if p.is_minus_infinity(node.args[1]) else "1.0")
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            if is_number(node.value, float) or p.is_minus_infinity(node.value):
                yield p.put(node.value, "0.0" if not is_number(node.value) else "1.0" if node.value.value == 0 else "0.0")
    for node in ast.walk(p.forward):
        if called(node) == "zeros":
            yield p.put(node.func, "torch.empty")


def boundary_moved(p):
    """A comparison turned round, a limit moved."""
    turned = {ast.Gt: "<", ast.Lt: ">", ast.GtE: "<", ast.LtE: ">"}
    widened = {ast.Gt: ">=", ast.Lt: "<=", ast.GtE: ">", ast.LtE: "<"}
    for kernel in p.kernels:
        limits = {node for _, node in bounds(p)}
        for node in ast.walk(kernel.node):
            if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in turned and node not in limits:
                if p.inside(node, [m for _, m in kernel.masks]) or not p.inside(node, {w.args[0] for w in ast.walk(kernel.node) if called(w) == "where" and w.args}):
                    continue
                left, right = p.source(node.left), p.source(node.comparators[0])
                yield p.put(node, f"{left} {turned[type(node.ops[0])]} {right}")
                yield p.put(node, f"{left} {widened[type(node.ops[0])]} {right}")
                if is_number(node.comparators[0], float):
                    yield p.put(node.comparators[0], repr(node.comparators[0].value + 0.1))
            if of_triton(node, {"minimum", "maximum"}) and is_number(node.args[1], float) and p.is_value(kernel, node):
                limit = node.args[1].value
                yield p.put(node.args[1], repr(limit + 0.1 if limit <= 0 else limit * 1.25))
                yield p.put(node.args[1], repr(limit - 0.1 if limit <= 0 else limit * 0.75))


def wrong_cast(p):
    """The result goes through another dtype, or the output's dtype is fixed to what it happens to be."""
    half = "float16" in p.task
    for kernel in p.kernels:
        for call in kernel.memory:
            if called(call) == "store":
                stored = call.args[1]
                if called(stored) == "to":
                    yield p.put(stored.args[0], "tl.float16")
                    yield p.put(stored.args[0], "tl.int32")
                else:
                    yield p.put(stored, f"{p.atom(stored)}.to(tl.float16)")
                    yield p.put(stored, f"{p.atom(stored)}.to(tl.bfloat16)")
            if called(call) == "load" and called(p.parent[p.parent[call]] if isinstance(p.parent[call], ast.Attribute) else None) == "to":
                outer = p.parent[p.parent[call]]
                yield p.put(outer, p.source(call))
    for node in ast.walk(p.forward):
        if isinstance(node, ast.keyword) and node.arg == "dtype" and isinstance(node.value, ast.Attribute) and node.value.attr == "dtype":
            yield p.put(node.value, "torch.float16" if half else "torch.float32")
        if called(node) == "empty_like" and not node.keywords:
            yield p.put(node, p.source(node)[:-1] + f", dtype=torch.{'float16' if half else 'float32'})")


# --- What happens to hold at the task's own sizes and values.

def hard_coded_size(p):
    """A size of a launch, its grid, or of a kernel's text is the number it has in the task."""
    for launch in p.launches:
        kernel, arguments = p.launch_arguments(launch)
        for parameter, expression in arguments:
            value = p.value(expression)
            if isinstance(value, int) and not is_number(expression) and parameter in kernel.sizes and value > 1:
                yield p.put(expression, str(value))
                for node in ast.walk(kernel.node):
                    if isinstance(node, ast.Name) and node.id == parameter and isinstance(node.ctx, ast.Load):
                        yield p.put(node, str(value))
        for part in p.grid_parts(launch):
            value = p.value(part)
            if isinstance(value, int) and not is_number(part):
                yield p.put(part, str(value))


def power_of_two(p):
    """The padded size of a block in place of the size: right where the size is a power of two."""
    for launch in p.launches:
        kernel, arguments = p.launch_arguments(launch)
        texts = {p.source(expression): parameter for parameter, expression in arguments if parameter in kernel.sizes}
        for parameter, expression in arguments:
            if called(expression) == "next_power_of_2":
                size = texts.get(p.source(expression.args[0]))
                if size is None:
                    continue
                for node in ast.walk(kernel.node):
                    if isinstance(node, ast.Name) and node.id == size and isinstance(node.ctx, ast.Load):
                        yield p.put(node, parameter)
            elif is_number(expression, int) and expression.value >= 16:
                for size in kernel.sizes:
                    value = p.value(dict(arguments).get(size, expression))
                    if isinstance(value, int) and value % expression.value == 0:
                        for node in ast.walk(kernel.node):
                            if isinstance(node, ast.Name) and node.id == size and isinstance(node.ctx, ast.Load):
                                up = p.parent[node]
                                if isinstance(up, (ast.Compare, ast.BinOp)):
                                    yield p.put(node, f"({size} // {parameter} * {parameter})")


def block_assumption(p):
    """One block where more may be needed: a fixed block size, a loop that runs once."""
    for launch in p.launches:
        _, arguments = p.launch_arguments(launch)
        for parameter, expression in arguments:
            value = p.value(expression)
            if called(expression) == "next_power_of_2" and isinstance(value, int):
                yield p.put(expression, str(value))
        for part in p.grid_parts(launch):
            if called(part) == "cdiv":
                yield p.put(part, "1")
    for kernel in p.kernels:
        for node in ast.walk(kernel.node):
            if isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and getattr(node.iter.func, "id", "") == "range" and len(node.iter.args) == 3:
                yield p.put(node.iter.args[1], p.source(node.iter.args[2]))


def value_range(p):
    """What protects against rare values left out: maximum before exp, clamp, relu, abs, threshold."""
    for kernel in p.kernels:
        for node in ast.walk(kernel.node):
            if not isinstance(node, ast.expr) or not p.is_value(kernel, node):
                continue
            if of_triton(node, {"max"}) and isinstance(p.parent[node], ast.BinOp) and isinstance(p.parent[node].op, ast.Sub):
                yield p.put(p.parent[node], p.atom(p.parent[node].left))
            elif of_triton(node, {"max"}) and isinstance(p.parent[node], ast.Assign):
                yield p.put(node, f"({p.source(node)} * 0.0)")
            elif of_triton(node, {"minimum", "maximum"}) and is_number(node.args[1]):
                yield p.put(node, p.atom(node.args[0]))
            elif of_triton(node, {"abs"}):
                yield p.put(node, p.atom(node.args[0]))
            elif of_triton(node, {"where"}) and isinstance(node.args[0], ast.Compare) and is_number(node.args[0].comparators[0]):
                yield p.put(node, p.atom(node.args[1]))
                yield p.put(node, p.atom(node.args[2]))


def input_baked(p):
    """A parameter or a statistic replaced by the value it usually has."""
    usual = {"bias": "0.0", "mean": "0.0", "weight": "1.0", "gamma": "1.0", "beta": "0.0", "var": "1.0", "gain": "1.0"}
    for kernel in p.kernels:
        for call in kernel.memory:
            if called(call) == "load" and p.is_value(kernel, call) and not any(of_triton(n, {"dot"}) for n in ast.walk(kernel.node)):
                pointer = next((n for n in sorted(names_in(call.args[0])) if n in kernel.pointers), "")
                for word, value in usual.items():
                    if re.search(rf"(^|_){word}(_|$)", pointer) or pointer in ("b_ptr", "w_ptr") and word[0] == pointer[0]:
                        outer = p.parent[p.parent[call]] if isinstance(p.parent[call], ast.Attribute) else call
                        yield p.put(outer, value)
                        break
        for statement in kernel.assignments():
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) and statement.targets[0].id in ("mean", "variance", "var"):
                value = "0.0" if statement.targets[0].id == "mean" else "1.0"
                yield p.put(statement.value, f"({p.source(statement.value)}) * 0.0 + {value}")


KINDS = {f.__name__: f for f in (mask_removed, mask_off_by_one, mask_wrong_bound, stride_wrong, index_swap, output_unwritten, scale_changed, eps_changed,
                                 axis_wrong, accumulator_precision, op_dropped, tail_missing, initial_value, boundary_moved, wrong_cast, hard_coded_size,
                                 power_of_two, block_assumption, value_range, input_baked)}
