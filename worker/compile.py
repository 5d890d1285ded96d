# SPDX-License-Identifier: Apache-2.0
# Job `compile`: one cubin from a kernel's recorded text and a spec. No host code of the candidate runs here, so none
# can decide what a cubin holds.
import ast
import os
import re
import time

import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDABackend
from triton.compiler.compiler import ASTSource
from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources, PTXASError
from triton.runtime.jit import ConstexprFunction

import fake_cuda
from failure import Failure, describe, is_out_of_memory, line_in_file
from kernels import Rebuilder, closure
from trace_format import pack
from session import OPTIONS, cubin_entry, decode_spec, spec_kernels

# What annotations, defaults and constexpr functions may call; anything else has no business in a kernel's text.
BUILTINS = {name: __builtins__[name] if isinstance(__builtins__, dict) else getattr(__builtins__, name) for name in (
    "abs all any bool dict divmod enumerate float int isinstance len list map max min pow range reversed round "
    "set slice sorted str sum tuple zip ValueError TypeError RuntimeError AssertionError NotImplementedError").split()}


def _check_text(entry):
    """A kernel's text is one function and nothing else."""
    tree = ast.parse(entry["source"])
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef) or tree.body[0].decorator_list or \
            tree.body[0].name != entry["name"]:
        raise Failure("triton_compile", "compile", "this is not the text of one function")


def _where(error, entries):
    """(kernel, line of the candidate's file) of the innermost line that a compilation error names, or ()."""
    found = ()
    while error is not None:
        line = getattr(getattr(error, "node", None), "lineno", None)
        for entry in entries:
            if line is not None and entry["source"] == getattr(error, "src", None):
                found = entry["name"], line_in_file(entry, line)
        error = error.__cause__
    return found


# Memory that outlives a run of a kernel tells the next run about it: variables, and local and shared memory, which nobody
# clears between launches. Registers, and what the kernel is given, are all that assembly may use.
_MEMORY = re.compile(r"""
    \.(shared|local)\b                                                    # Of either kind, declared or reached for.
    | (?<![\w.$])\.(global|const|extern|weak|common|visible|func|entry|section|file|tex|alias)\b  # A declaration.
    | (?<![\w.$%])(cvta|alloca|stacksave|stackrestore|mapa|ldmatrix|stmatrix|movmatrix|mbarrier|cp|wgmma|tcgen05|getctarank)\b
    | %\w*smem\w*
    """, re.VERBOSE)
# The text is what the assembler gets but for "$0", "${0:w}" and "$$": other escapes can put words together.
_ESCAPES = re.compile(r"\$(?!\d|\$|\{\d+(:\w+)?\})")


def check_assembly(text):
    """Raises Failure for inline assembly that has memory of its own."""
    if _MEMORY.search(text):
        raise Failure("kernel_memory", "compile", "inline assembly declares memory, or uses shared or local memory")
    if _ESCAPES.search(text) or re.search(r"^\s*#", text, re.MULTILINE):
        raise Failure("kernel_memory", "compile", "inline assembly that is put together by the assembler")


def _check_ptx(ptx):
    """Triton declares what it needs in front of the first function. Behind that, nobody declares what outlasts a run."""
    body = re.search(r"^\{", ptx, re.MULTILINE)
    if body and re.search(r"(?<![\w.$])\.(global|const|extern|weak|common)\b", ptx[body.start():]):
        raise Failure("kernel_memory", "compile", "inline assembly declares memory of its own")


def _checked_inline_asm(builder, text, *rest):
    check_assembly(text)
    return _create_inline_asm(builder, text, *rest)


def _checked_make_cubin(self, ptx, *rest):
    _check_ptx(ptx)
    return _make_cubin(self, ptx, *rest)


def _noted_make_ttir(module, *rest):
    global _products
    module = _make_ttir(module, *rest)
    _products = products(str(module))
    return module


_make_cubin, _make_ttir = CUDABackend.make_cubin, CUDABackend.make_ttir
CUDABackend.make_cubin, CUDABackend.make_ttir = _checked_make_cubin, staticmethod(_noted_make_ttir)
_create_inline_asm = ir.builder.create_inline_asm
ir.builder.create_inline_asm = _checked_inline_asm
_products = "rounded"  # Of the kernel compiled last.


def _runtime_value(argument):
    if isinstance(argument, (tuple, list, tl.tuple)):
        return any(map(_runtime_value, argument))
    return isinstance(argument, tl.tensor)


def _checked_constexpr_call(self, *args, **kwargs):
    """What is computed while compiling knows no number of a run: the interpreter would give it one."""
    if any(map(_runtime_value, [*args, *kwargs.values()])):
        raise TypeError("a constexpr function is given a value that is known at run time only")
    return _constexpr_call(self, *args, **kwargs)


_constexpr_call = ConstexprFunction.__call__
ConstexprFunction.__call__ = _checked_constexpr_call


def products(ttir):
    """What the compiled kernel does to the elements of matrices before it multiplies them: "none" (it multiplies none),
    "exact", "tf32" (cuts float32 ones, and no others are narrower) or "rounded". Text that a kernel brings is within
    quotes in its IR, and never begins a line."""
    found = "none"
    for line in re.findall(r"^ *%\S+ = (tt\.dot(?:_scaled)? .*)$", ttir, re.MULTILINE):
        exact = line.startswith("tt.dot ") and re.search(r" : tensor<\w+f(32|64)>", line)
        if exact and "inputPrecision = tf32 " in line.replace(":", " :"):
            found = "tf32"
        elif not exact or "inputPrecision = " in line:
            return "rounded"
        elif found == "none":
            found = "exact"
    return found


def run(job, payload, blob, work):
    args = job["args"]
    spec, folder = args["spec"], os.path.join(work, "kernels")
    fake_cuda.set_target({**args.get("gpu", {}), "arch": int(spec.get("arch", 90))})
    if not set(spec["options"]) <= set(OPTIONS):
        raise Failure("not_recordable", "compile", "unknown launch options")
    used = closure(args["kernels"], spec_kernels(spec))[1]
    os.makedirs(folder, exist_ok=True)
    entries = [args["kernels"][index] for index in used]
    for entry in entries:
        _check_text(entry)
    rebuilder = Rebuilder(args["kernels"], folder, {"jit": triton.jit, "constexpr_function": triton.constexpr_function},
                          names=used, builtins=BUILTINS)
    try:
        function = rebuilder[spec["kernel"]]
        source = ASTSource(function, *decode_spec(spec, function, rebuilder))
        options = {name: value for name, value in spec["options"].items() if value is not None}
        started = time.perf_counter()
        kernel = triton.compile(source, target=GPUTarget("cuda", fake_cuda.target["arch"], 32), options=options)
        seconds = time.perf_counter() - started
        kernel._init_handles()  # Refuses what the device has not got.
    except Failure:
        raise
    except Exception as error:
        rule = "out_of_memory" if is_out_of_memory(error) else "triton_compile"
        text = describe(error, "", folder)
        if not isinstance(error, (CompilationError, OutOfResources, PTXASError)):
            text = text.replace("tritonrl_kernel_", "kernel ")
        raise Failure(rule, "compile", text, *_where(error, entries)) from None
    constants = {name: arg for name, arg in spec["constants"].items() if "." not in name}
    entry = cubin_entry(spec["kernel"], source.signature, constants, kernel.metadata)
    blob.add_bytes(pack({"kernels": args["kernels"], "cubins": [{**entry, "tensor": kernel.kernel}], "cases": []}))
    return {"seconds": seconds, "products": _products}
