"""Ctrl-C in the middle of a compilation: the process lives, and the compiler works afterwards."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from numba.core.compiler_lock import global_compiler_lock

from rblspi.core.compiled import jit

#: interrupts itself in a call of LLVM while it compiles, and compiles again
INTERRUPTED = """
import gc, os, signal, sys
from llvmlite.binding import ffi

real, left = getattr(ffi.lib, sys.argv[1]), 2
def interrupted(*arguments):
    global left
    result, left = real._cfn(*arguments), left - 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGINT)
    return result

from rblspi.core.compiled import jit
signal.signal(signal.SIGINT, signal.default_int_handler)

@jit
def inner(x):
    return x + 1

@jit
def outer(x):
    return 2 * inner(x)

inner(0.5)
ffi.lib._fntab[sys.argv[1]] = type(real)(real._lock, interrupted)
try:
    outer(1)
except KeyboardInterrupt:
    print("interrupted", len(outer.signatures))
gc.collect()
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
print(outer(2))
"""

#: owners of a module change; a string is freed; exceptions are dropped
CALLS = ["LLVMPY_LinkModules", "LLVMPY_DisposeString", "LLVMPY_DisposePassBuilder"]


@pytest.mark.parametrize("call", CALLS)
def test_an_interrupt_within_a_call_of_llvm_is_neither_fatal_nor_lost(call, tmp_path):
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, script, call], env=variables, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted 0\n6\n", "")


def test_signals_wait_for_the_compiler_and_are_then_handled_once_and_in_order():
    heard = []
    both = (signal.SIGTERM, signal.SIGINT)
    former = {n: signal.signal(n, lambda number, frame: heard.append(number)) for n in both}
    try:
        with global_compiler_lock, global_compiler_lock:
            for number in both:
                signal.raise_signal(number)
            assert heard == []
        assert heard == list(both)
        signal.raise_signal(signal.SIGINT)
        assert heard == [*both, signal.SIGINT]
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def test_a_compilation_in_another_thread_leaves_the_handlers_alone():
    @jit
    def f(x):
        return x - 2

    seen = []
    handler = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=lambda: seen.append((f(3), signal.getsignal(signal.SIGINT))))
    thread.start()
    thread.join()
    assert seen == [(1, handler)]
