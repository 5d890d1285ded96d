# SPDX-License-Identifier: Apache-2.0
# What a cubin (an ELF file) says of its kernel: registers and stack bytes a thread. A driver would tell it otherwise.
import struct

_REGISTERS, _FRAME = 0x2F, 0x11  # Attributes of the section .nv.info.


def resources(image):
    """(registers, stack bytes) of the kernel in an image that holds one."""
    table, = struct.unpack_from("<Q", image, 0x28)
    entry, count, names = struct.unpack_from("<HHH", image, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", image, table + i * entry) for i in range(count)]
    found = {}
    for name, _, _, _, offset, size in sections:
        start = sections[names][4] + name
        if image[start:image.index(b"\0", start)] != b".nv.info":
            continue
        at = offset
        while at + 4 <= offset + size:
            form, attribute, length = struct.unpack_from("<BBH", image, at)
            at += 4
            if form == 4:  # The value follows; otherwise `length` is the value.
                if length == 8:
                    found[attribute] = max(found.get(attribute, 0), struct.unpack_from("<II", image, at)[1])
                at += length
    return found.get(_REGISTERS, 32), found.get(_FRAME, 0)
