# SPDX-License-Identifier: Apache-2.0
# Controls: the reference's forward again, and once for each operation that can be left out, its input passed through.
# Wrong answers by construction: where one passes the comparison, the task does not notice that operation.
import torch
from torch.utils._python_dispatch import TorchDispatchMode

PLUMBING = frozenset("""clone copy_ _to_copy contiguous detach alias lift_fresh empty empty_like empty_strided new_empty
    new_empty_strided zeros zeros_like new_zeros ones ones_like new_ones full full_like new_full fill_ zero_ arange
    scalar_tensor cat stack constant_pad_nd repeat flip roll""".split())


class _Dropping(TorchDispatchMode):
    """Leaves out the compute call number `drop` where an input has the shape and dtype of its result."""

    def __init__(self, drop):
        super().__init__()
        self.drop, self.seen, self.dropped = drop, 0, None

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func.is_view or func._schema.name.split("::")[1] in PLUMBING:
            return func(*args, **kwargs)
        number, self.seen = self.seen, self.seen + 1
        if number != self.drop:
            return func(*args, **kwargs)
        if func._schema.is_mutable:
            if args and isinstance(args[0], torch.Tensor) and func._schema.returns[:1]:
                self.dropped = str(func)
                return args[0]
            return func(*args, **kwargs)
        out = func(*args, **kwargs)
        if isinstance(out, torch.Tensor):
            for arg in args:
                if isinstance(arg, torch.Tensor) and arg.shape == out.shape and arg.dtype == out.dtype:
                    self.dropped = str(func)
                    return arg.clone()
        return out


def run(model, inputs, input_seed, most, add):
    """{"again": STRUCTURE, "controls": [{"op", "outputs": STRUCTURE}]}; `add` turns an output into its STRUCTURE."""
    def forward(drop):
        torch.manual_seed(input_seed)
        given = [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]
        with torch.no_grad(), _Dropping(drop) as mode:
            return model(*given), mode

    out, mode = forward(-1)
    answer = {"again": add(out), "controls": []}
    for drop in range(min(mode.seen, 4 * most)):
        try:
            wrong, used = forward(drop)
        except Exception:  # What comes after it does not take this input.
            continue
        if used.dropped is not None:
            answer["controls"].append({"op": used.dropped, "outputs": add(wrong)})
        if len(answer["controls"]) == most:
            break
    return answer
