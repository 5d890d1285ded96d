# SPDX-License-Identifier: Apache-2.0
# Case: records a candidate's ModelNew for one case, from the import of its file to what forward() returns.
import contextlib
import os
import time

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources, PTXASError

import fake_cuda
from candidate import load, rebind, size_constants
from failure import RAISED_IN, Failure, candidate_lines, describe, is_out_of_memory, scrub
from further_calls import Call, further_cases
from tape import Recorder, UnknownTensor, is_fake
from values import cast_module
from wire import DTYPES, InitArguments, decode_init, dtype_name


class Case:
    """Records forward() once, with a module import of its own, because constants may be rebound."""

    def __init__(self, args, spec, session, work):
        self.args, self.spec, self.session, self.work = args, spec, session, work
        self.init_inputs = InitArguments.decoded(spec.get("init_inputs", args.get("init_inputs", [])))
        self.dtype = DTYPES.get(spec.get("dtype"))  # Of floating inputs and weights; None = as written.
        self.phase, self.path = "import", ""
        self.called = False        # forward() has been called once.
        self.module_name = f"candidate_{spec['name']}"
        self.seconds = {}
        self.sections = {}         # "init_steps", "input_steps".
        self.blob_parameters = []  # Parameter entries; under "tensor" a constant's real one.
        self.further = []          # (suffix of the name, CASE_TRACE) of calls that do not repeat the first.

    def run(self):
        started = time.perf_counter()
        try:
            return self._run()
        except UnknownTensor:
            raise
        except Failure as failure:
            lines = candidate_lines(failure, self.path)
            failure.message = self._in_its_call(scrub("\n".join([*lines[-3:], failure.message]), self.work))
            raise
        except BaseException as error:
            failure = self._failure(error)
            failure.message = self._in_its_call(failure.message)
            raise failure from None
        finally:
            self.seconds["total"] = time.perf_counter() - started

    def _in_its_call(self, message):
        return f"in a further call of forward(), on other inputs: {message}" if self.called else message

    def _failure(self, error):
        if is_out_of_memory(error):
            return Failure("out_of_memory", self.phase, describe(error, self.path, self.work))
        phase, rule = self.phase, RAISED_IN[self.phase]
        if getattr(error, "tritonrl_phase", "") or isinstance(error, (CompilationError, OutOfResources, PTXASError)):
            phase, rule = "compile", "triton_compile"
        elif phase == "forward" and _raised_in_launch(error):
            phase = "launch"
        return Failure(rule, phase, describe(error, self.path, self.work))

    def _add_seconds(self, name, seconds):
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def _timed(self, name, function, *args):
        started = time.perf_counter()
        try:
            return function(*args)
        finally:
            self._add_seconds(name, time.perf_counter() - started)

    def _run(self):
        source = self.args["candidate_source"]
        self.path = os.path.join(self.work, self.spec["name"], "candidate.py")
        self.session.source_path = self.path
        constants = self.spec.get("constants") or {}
        if constants:
            try:
                source = rebind(source, constants, size_constants(self.args["task_source"]))
            except (SyntaxError, ValueError):
                pass  # The import says it better.
        with fake_cuda.DeviceMode():
            module, _ = self._timed("import", load, source, os.path.dirname(self.path),
                                    self.module_name)
            self.phase = "init"
            model_class = getattr(module, "ModelNew", None)
            if not isinstance(model_class, type):
                raise Failure("import_failed", "import", "candidate.py defines no class ModelNew")
            model, recorder = self._record_init(lambda: self.init_inputs.call(model_class))
            self.sections["input_steps"] = 0
            return self._forward(model, recorder, *self._given_inputs(recorder))

    # --- __init__.

    def _cast(self, model):
        """Where the case has another precision, weights are made in the module's own and cast."""
        if self.dtype is not None:
            with torch.no_grad():
                cast_module(model, self.dtype)

    def _before_first_use(self, _model):
        """What moving a module to the GPU would do to it; recorded."""

    def _record_init(self, build):
        """Runs `build()` on a tape of its own making; the module's tensors become the trace's parameters."""
        recorder = Recorder(FakeTensorMode(allow_non_fake_inputs=True))
        with self._on_tape(recorder, "init"):
            model = build()
            self._check_model(model)
            self._cast(model)
            self._before_first_use(model)
        with fake_cuda.truth():
            for module in model.modules():
                for table in (module._parameters, module._buffers):
                    for key, tensor in table.items():
                        if tensor is not None and not is_fake(tensor):
                            recorder.value(tensor)
                            table[key] = recorder.fake_of(tensor)
            buffers = {name for name, _ in model.named_buffers(remove_duplicate=False)}
            for name, fake in self._named(model):
                recorder.parameters.append([name, recorder.value(fake), name in buffers])
                self.blob_parameters.append({"name": name, "shape": list(fake.shape),
                                             "dtype": dtype_name(fake.dtype)})
        self.sections["init_steps"] = len(recorder.tape)
        return model, recorder

    @staticmethod
    def _check_model(model):
        if not isinstance(model, torch.nn.Module):
            raise Failure("init_failed", "init", "ModelNew is not a torch.nn.Module")
        model.eval()

    @staticmethod
    def _named(model):
        yield from model.named_parameters(remove_duplicate=False)
        yield from model.named_buffers(remove_duplicate=False)

    # --- forward().

    @contextlib.contextmanager
    def _on_tape(self, recorder, phase):
        """Host code inside is recorded. Tensors made before forward() count as being on the GPU."""
        self.phase = recorder.phase = phase
        recorder.all_on_cuda = phase != "forward"
        self.session.recorder, self.session.compile = recorder, self.spec.get("compile", True)
        fake_cuda.recorder = recorder
        compiled_before = self.session.compile_seconds
        started = time.perf_counter()
        try:
            with torch.no_grad(), torch._C._AutoDispatchBelowAutograd(), recorder.fake_mode, recorder:
                recorder.recording = True
                yield
                recorder.recording = False
        except UnknownTensor:
            raise
        except BaseException:
            if recorder.sticky is not None:
                raise recorder.sticky
            raise
        finally:
            recorder.recording = False
            fake_cuda.recorder = self.session.recorder = None
            compiled = self.session.compile_seconds - compiled_before
            self._add_seconds("compile", compiled)
            self._add_seconds(phase, time.perf_counter() - started - compiled)
        if recorder.sticky is not None:
            raise recorder.sticky

    def _given_inputs(self, recorder):
        """Fake inputs as the case describes them, and the trace's entries for them."""
        inputs, entries = [], []
        with fake_cuda.truth(), recorder.fake_mode:
            for spec in self.spec["inputs"]:
                if "value" in spec:
                    inputs.append(decode_init(spec["value"]))
                    entries.append(None)
                    continue
                stride = spec.get("stride") or None
                dtype = DTYPES[spec["dtype"]]
                inputs.append(torch.empty(spec["shape"], dtype=dtype, device="cpu") if stride is None else
                              torch.empty_strided(spec["shape"], stride, dtype=dtype, device="cpu"))
                entries.append(recorder.add(inputs[-1]))
        return inputs, entries

    def _forward(self, model, recorder, inputs, entries):
        first = Call(recorder, [entry if type(entry) is int else None for entry in entries])
        first.end(recorder, self._call(model, recorder, inputs))
        if not self.spec.get("additional"):
            self.called = True
            self._call_again(model, recorder, first, inputs, entries)
        for name, real in recorder.constants:
            self.blob_parameters.append({"name": name, "shape": list(real.shape), "dtype": dtype_name(real.dtype),
                                         "tensor": real.detach()})
        return first.case_trace(recorder, entries)

    def _call(self, model, recorder, inputs):
        with self._on_tape(recorder, "forward"):
            out = model(*inputs)
            recorder.recording = False
            return recorder.structure(out)

    def _call_again(self, model, recorder, first, inputs, entries):
        self.further = further_cases(recorder, first, entries, lambda tensors: self._call(
            model, recorder, [value if tensor is None else tensor for value, tensor in zip(inputs, tensors)]))


def _raised_in_launch(error):
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith("triton/runtime/jit.py"):
            return True
        trace = trace.tb_next
    return False
