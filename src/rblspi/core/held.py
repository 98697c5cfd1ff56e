"""Tuples of arrays, kept in memory as compiled code stores them.

Python hands a tuple of thirty arrays to a compiled function in more than ten microseconds, array by
array. Where a function is called at every step, the tuple is written into memory once, and compiled
code reads it from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from rblspi.core.types import Integers


@global_compiler_lock  # type: ignore[untyped-decorator]
def memory_for(kind: Any) -> Integers:
    """Memory that is large enough for a value of a Numba type; zeros hold no reference."""
    context = cpu_target.target_context
    context.refresh()  # before its first compilation it does not know all types
    return np.zeros(-(-context.get_abi_sizeof(context.get_value_type(kind)) // 8), np.int64)


def _place(context: Any, builder: Any, kind: Any, memory_type: Any, memory: Any) -> Any:
    data = context.make_array(memory_type)(context, builder, memory).data
    return builder.bitcast(data, context.get_value_type(kind).as_pointer())


@intrinsic  # type: ignore[untyped-decorator]
def hold(_context: Any, value: Any, memory: Any) -> Any:
    """Write a value into memory, with a reference to each of its arrays."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        context.nrt.incref(builder, value, arguments[0])
        place = _place(context, builder, value, signature.args[1], arguments[1])
        builder.store(arguments[0], place, align=8)
        return context.get_dummy_value()

    return types.void(value, memory), generate


def reader(kind: Any) -> Callable[..., Any]:
    """A function for compiled code: the value of this type that memory holds."""

    @intrinsic  # type: ignore[untyped-decorator]
    def read(_context: Any, memory: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = _place(context, builder, kind, signature.args[0], arguments[0])
            value = builder.load(place, align=8)
            context.nrt.incref(builder, kind, value)
            return value

        return kind(memory), generate

    return read  # type: ignore[no-any-return]


def releaser(kind: Any) -> Callable[..., None]:
    """A function for compiled code: give up the references that memory holds."""

    @intrinsic  # type: ignore[untyped-decorator]
    def release(_context: Any, memory: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = _place(context, builder, kind, signature.args[0], arguments[0])
            context.nrt.decref(builder, kind, builder.load(place, align=8))
            return context.get_dummy_value()

        return types.void(memory), generate

    return release  # type: ignore[no-any-return]
