# SPDX-License-Identifier: Apache-2.0
"""Compiles what the Python worker imports into FOLDER: cache_bytecode.py FOLDER WORKER.

For environments whose packages came without bytecode (uv's, say): there every start of the worker would compile
torch and triton anew, since inside the sandbox nothing can be written. The build runs this; the verifier then starts
its workers with `-X pycache_prefix=FOLDER`. Writes FOLDER/complete at the end; a failure is said and costs only time, so it
does not end the build.
"""
import os
import pathlib
import subprocess
import sys

IMPORTS = """
import os, sys, tempfile
sys.path.insert(0, sys.argv[1])
os.environ["HOME"] = tempfile.mkdtemp()
if sys.argv[2] == "interpret":
    os.environ["TRITON_INTERPRET"] = "1"
import fork_server, frames, jail, warm_up
warm_up.warm_up(sys.argv[2])
"""

folder, worker = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
# As the jail sees it: the environment's folder without symbolic links, but its own interpreter.
python = os.path.join(os.path.realpath(os.path.dirname(os.path.dirname(sys.executable))), "bin",
                      os.path.basename(sys.executable))
running = [subprocess.Popen([python, "-I", "-X", f"pycache_prefix={folder}", "-c", IMPORTS, str(worker), mode],
                            env={"PATH": os.environ.get("PATH", ""), "CUDA_VISIBLE_DEVICES": ""},
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for mode in ("record", "interpret")]
for process in running:
    error = process.communicate()[1]
    if process.returncode != 0:
        print("no bytecode is kept, workers will start slowly:", error.decode(errors="replace")[-2000:], file=sys.stderr)
        sys.exit(0)
(folder / "complete").touch()
