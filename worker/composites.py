# SPDX-License-Identifier: Apache-2.0
# Which composite ATen operations are taken apart on the tape.
#
# Most stay whole: what a composite does inside depends on the device it runs on (linear, batch_norm, lstm, cdist,
# dropout, losses, ...), and the recorder's tensors are only said to be on a GPU. Those that arrange, copy or cast are
# decomposed, so that the call rules and the data-flow check meet a handful of primitive views and copies; so are those that
# ask for a property and those that read a value.
_LAYOUT = """
    _cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long _cast_Short to type_as
    contiguous reshape reshape_as view_as flatten unflatten ravel squeeze squeeze_ expand_as broadcast_to
    broadcast_tensors chunk unsafe_chunk tensor_split split hsplit vsplit dsplit narrow select transpose movedim
    moveaxis swapaxes swapaxes_ swapdims swapdims_ mT mH matrix_H numpy_T adjoint T H unbind atleast_1d atleast_2d
    atleast_3d column_stack row_stack hstack vstack dstack concat concatenate tile pad _pad_enum _pad_circular
    pad_sequence meshgrid diagonal flatten_dense_tensors unflatten_dense_tensors positive conj real imag resolve_conj
    resolve_neg align_as align_to align_tensors rename rename_ refine_names fliplr flipud diag diagflat lift
    lift_fresh data set_data requires_grad_ retain_grad pin_memory to_dense
"""
_QUESTIONS = """
    item is_nonzero size stride is_complex is_conj is_distributed is_floating_point is_inference is_leaf is_neg
    is_signed is_vulkan_available isreal result_type can_cast promote_types _version output_nr retains_grad
    cudnn_is_acceptable _debug_has_internal_overlap _has_compatible_shallow_copy_type _is_zerotensor _nnpack_available
    _use_cudnn_rnn_flatten_weight argwhere nonzero_numpy _shape_as_tensor _dim_arange
"""
TAKEN_APART = frozenset(f"aten::{name}" for name in (_LAYOUT + _QUESTIONS).split())
# In-place operations whose result is their first argument, whatever else they are given.
FILLS = frozenset(f"aten::{name}" for name in "uniform_ normal_ zero_ fill_ bernoulli_ random_ exponential_".split())


# --- Shapes. Fake results of operations that would otherwise be taken apart just to see how large their result is. A
# function answers None where something is unusual; the fake mode then works it out, and finds the errors.

def _recurrent(x, states, _weights, _bias, _layers, _dropout, _train, bidirectional, batch_first=None):
    """lstm, gru, rnn_tanh, rnn_relu; laid out as cuDNN does it: the sequence is the outermost dimension in memory."""
    if not isinstance(batch_first, bool):
        return None  # The variant for packed sequences.
    states = list(states) if isinstance(states, (list, tuple)) else [states]
    batch, steps = x.shape[:2] if batch_first else x.shape[1::-1]
    out = x.new_empty((steps, batch, states[0].shape[-1] * (1 + bidirectional)))
    return (out.transpose(0, 1) if batch_first else out, *[state.new_empty(state.shape) for state in states])


def _alike(x, *others):
    return x.is_contiguous() and all(other is None or other.dtype == x.dtype for other in others)


def _linear(x, weight, bias=None):
    if x.dim() < 2 or weight.dim() != 2 or x.shape[-1] != weight.shape[1] or not _alike(x, weight, bias) or \
            bias is not None and bias.shape != weight.shape[:1]:
        return None
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


def _batch_norm(x, weight, bias, mean, variance, training, *_):
    tables = [table for table in (weight, bias, mean, variance) if table is not None]
    if training or mean is None or variance is None or x.dim() < 2 or not _alike(x, *tables) or \
            any(table.shape != x.shape[1:2] for table in tables):
        return None
    return x.new_empty(x.shape)


def _layer_norm(x, shape, weight=None, bias=None, *_):
    shape = tuple(shape)
    if not _alike(x, weight, bias) or tuple(x.shape[x.dim() - len(shape):]) != shape or \
            any(table is not None and tuple(table.shape) != shape for table in (weight, bias)):
        return None
    return x.new_empty(x.shape)


def _group_norm(x, groups, weight=None, bias=None, *_):
    if x.dim() < 2 or not _alike(x, weight, bias) or x.shape[1] % groups or \
            any(table is not None and table.shape != x.shape[1:2] for table in (weight, bias)):
        return None
    return x.new_empty(x.shape)


SHAPES = {"aten::linear": _linear, "aten::batch_norm": _batch_norm, "aten::layer_norm": _layer_norm,
          "aten::group_norm": _group_norm,
          **{f"aten::{name}": _recurrent for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")}}
