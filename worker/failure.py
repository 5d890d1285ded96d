# SPDX-License-Identifier: Apache-2.0
# Failure: how a job says that the candidate (not we) failed: the rule it broke, where, and what was said about it.
import errno
import linecache
import re
import sys
import traceback

MAX_MESSAGE = 2000
NO_ROOM = (errno.ENOMEM, errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
# The rule that an exception of the module's own code breaks, by phase.
RAISED_IN = {"import": "import_failed", "init": "init_failed", "forward": "forward_failed"}


class Failure(BaseException):
    """Not an Exception, so that a candidate's `except Exception` does not swallow it."""

    def __init__(self, rule, phase, message, kernel="", line=0):
        """`rule`: a name of src/verify/rules.inc; `line`: of the candidate's file, 0 = unknown."""
        super().__init__(message)
        self.rule, self.phase, self.message, self.kernel, self.line = rule, phase, message, kernel, line

    def to_json(self):
        json = {"rule": self.rule, "phase": self.phase, "message": sendable(self.message)[-MAX_MESSAGE:]}
        if self.kernel:
            json.update(kernel=sendable(self.kernel)[:200], line=self.line)
        return json


def sendable(text):
    """Text that UTF-8 can hold: lone surrogates as they are written in Python."""
    return text.encode("utf-8", "backslashreplace").decode()


def said(error):
    """What an error says of itself; its class may be the candidate's own."""
    try:
        return str(error)
    except BaseException as other:
        return f"<an error whose text raises {type(other).__name__}>"


def line_in_file(entry, line):
    """Line `line` of a KERNEL's text as a line of the candidate's file; 0 where that is not known."""
    return entry["line"] + line - 1 if entry.get("line") else 0


def scrub(text, work=""):
    """Takes this machine's paths out of a text and keeps its last MAX_MESSAGE characters."""
    if work:
        text = re.sub(re.escape(work) + r"[\w./-]*?candidate\.py", "candidate.py", text)
        text = text.replace(work, ".")
    for folder in {sys.prefix, sys.base_prefix}:
        text = re.sub(re.escape(folder) + r"[\w./+-]*/(?=[\w.+-]+)", "", text)
    text = re.sub(r"(?<![\w.])/(?:[\w.+-]+/)+(?=[\w.+-]+)", "", text)
    text = re.sub(r"0x[0-9a-f]{6,}", "0x...", text)
    return text.strip()[-MAX_MESSAGE:]


def describe(error, path, work=""):
    """The lines of the file at `path` that an error passed through (innermost last) and the error itself."""
    lines = candidate_lines(error, path)
    if isinstance(error, SyntaxError) and error.filename == path:
        source = linecache.getline(path, error.lineno or 0).strip()
        lines.append(f"candidate.py:{error.lineno}: {source}")
        lines.append(f"{type(error).__name__}: {error.msg}")
    else:
        seen, cause = set(), error
        texts = []
        while cause is not None and id(cause) not in seen:
            seen.add(id(cause))
            texts.append(f"{type(cause).__name__}: {said(cause)}")
            cause = cause.__cause__
        lines += lines_of_causes(texts)
    return scrub("\n".join(lines[-12:]), work)


def candidate_lines(error, path):
    """The last few lines of the file at `path` that an error passed through, innermost last, repetitions once."""
    lines = []
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == path:
            line = f"candidate.py:{frame.lineno} in {frame.name}: {(frame.line or '').strip()}"
            if not lines or lines[-1] != line:
                lines.append(line)
    return lines[-6:]


def lines_of_causes(texts):
    """The error, then what caused it, where the error does not say so itself."""
    kept = texts[:1]
    for text in texts[1:]:
        if text.split(": ", 1)[-1] not in kept[-1]:
            kept.append("caused by " + text)
    return kept


def is_out_of_memory(error):
    """Of memory or of room for files, which lie in memory too: a look from outside may come later than the error."""
    text = said(error)
    if issubclass(type(error), OSError) and OSError.errno.__get__(error) in NO_ROOM:
        return True
    return isinstance(error, MemoryError) or "DefaultCPUAllocator" in text or "Cannot allocate memory" in text
