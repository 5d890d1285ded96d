# SPDX-License-Identifier: Apache-2.0
# Which composite ATen operations are taken apart on the tape.
#
# Most stay whole: what a composite does inside depends on the device it runs on (linear, batch_norm, lstm, cdist,
# dropout, losses, ...), and the recorder's tensors are only said to be on a GPU. Those that arrange, copy or cast are
# decomposed, so that the policy and the data-flow check meet a handful of primitive views and copies; so are those that
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

_RECURRENT = frozenset(("aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu"))


def recurrent(name, args):
    """Fake results of lstm, gru, rnn_tanh and rnn_relu, which would otherwise be unrolled step by step; None for others.

    Laid out as cuDNN does it: with batch_first the sequence still is the outermost dimension in memory.
    """
    if name not in _RECURRENT or not isinstance(args[-1], bool):
        return None
    x, states, bidirectional, batch_first = args[0], args[1], args[-2], args[-1]
    several = isinstance(states, (list, tuple))
    states = list(states) if several else [states]
    batch, steps = x.shape[:2] if batch_first else x.shape[1::-1]
    out = x.new_empty((steps, batch, states[0].shape[-1] * (1 + bidirectional)))
    return (out.transpose(0, 1) if batch_first else out, *[state.new_empty(state.shape) for state in states])
