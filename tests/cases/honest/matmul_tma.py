# task: tests/cases/tasks/matmul.py
# expect: pass @full_run
# why: tensor descriptors made by the host: on a GPU the tensor memory accelerator loads and stores the tiles
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def matmul_kernel(a_desc, b_desc, c_desc, K, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    column = tl.program_id(1) * BLOCK
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, BLOCK):
        a = a_desc.load([row, k])
        b = b_desc.load([k, column])
        acc += tl.dot(a, b, input_precision="ieee")
    c_desc.store([row, column], acc)


class ModelNew(nn.Module):
    def forward(self, a, b):
        M, K = a.shape
        K, N = b.shape
        c = torch.empty(M, N, device=a.device)
        block = [16, 16]
        matmul_kernel[(triton.cdiv(M, 16), triton.cdiv(N, 16))](
            TensorDescriptor.from_tensor(a, block),
            TensorDescriptor.from_tensor(b, block),
            TensorDescriptor.from_tensor(c, block),
            K,
            BLOCK=16,
        )
        return c
