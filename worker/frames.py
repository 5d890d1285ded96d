# SPDX-License-Identifier: Apache-2.0
# Frames between verifier and fork server (PROTOCOL.md). Apart from wire.py, because the broker does without torch.
import json
import struct

FRAME = struct.Struct("<IQ")
MAX_HEADER = 1 << 20
MAX_PAYLOAD = 1 << 30


def pack_frame(header, payload=b""):
    text = json.dumps(header).encode()
    return FRAME.pack(len(text), len(payload)) + text + payload


def unpack_job(frame):
    """The job in a whole frame, its payload under "payload"."""
    header_size, _ = FRAME.unpack_from(frame)
    start = FRAME.size + header_size
    return {**json.loads(bytes(frame[FRAME.size:start])), "payload": memoryview(frame)[start:]}
