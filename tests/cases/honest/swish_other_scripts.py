# task: tests/cases/tasks/swish.py
# expect: pass @full_run
# why: comments, names and texts in other scripts than Latin, one of them written from the right
import torch
import torch.nn as nn
import triton
import triton.language as tl

ΛΌΓΟΣ = 1.0  # Σταθερά.
שלום = "שלום עולם 🎉"


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Größe n, 大小."""
    verschiebung = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # Ενημέρωση
    größe = verschiebung < n
    x = tl.load(x_ptr + verschiebung, mask=größe, other=0.0)
    tl.store(y_ptr + verschiebung, x / (1 + tl.exp(-x)), mask=größe)


class ModelNew(nn.Module):
    def forward(self, x):
        assert ΛΌΓΟΣ == 1.0, שלום
        y = torch.empty_like(x)
        swish_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
