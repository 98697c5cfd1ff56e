"""The kernels of linear algebra, written for the processor's vector registers.

Products of matrices are C <- C + alpha A'B. For a tile of C, the sums

    sum_j A_jr B_jc

of its rows r and columns c are kept in registers while j runs over the rows of A and B, and are
added to C once. To solve for C, C <- R'^-1 (C - A'B), the triangular system of a tile
is solved while it is in the registers. Most matrices of this library are small enough for the
processor's cache, so that packing them first, as BLAS does, gains nothing: see
docs/decisions/0011.

The order of all sums is fixed: rows j one after another, some of them at a time, and sixteen sums
in `dot`. A tile is eight rows high on every processor, as are the blocks in which `linear_algebra`
proceeds. The last bit of a result therefore depends neither on the processor, as long as it can
fuse a multiplication with an addition, nor on a version of BLAS.

Compiled code does not check its arguments: entries must be float64, and the entries of a row of B,
C and R must be adjacent in memory. A may be a transposed view.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from rblspi.core.compiled import jit_borrowing, jit_inlined
from rblspi.core.types import Matrix, Vector

_FEATURES = llvmlite.binding.get_host_cpu_features()
#: numbers in a vector register
LANES = 8 if _FEATURES.get("avx512f") else 4 if _FEATURES.get("avx") else 2
#: rows of a tile, and of one where C has fewer rows left
ROWS, HALF, QUARTER = 8, 4, 2
#: registers side by side in a row of a tile: two if the processor has 32, so that some are left for
#: A and B, and one if it has 16
ABREAST = 2 if _FEATURES.get("avx512f") or _FEATURES.get("neon") else 1
COLUMNS = ABREAST * LANES
#: rows of A and B that are read for all tiles of C before the next ones, to stay in the cache
DEPTH = 256
#: partial sums of `dot`
PARTIAL_SUMS = 16
#: bytes of a number
WIDTH = 8

_INT, _SHORT, _BIT, _DOUBLE = ir.IntType(64), ir.IntType(32), ir.IntType(1), ir.DoubleType()


@jit_inlined
def dot(a: Vector, b: Vector) -> float:
    """a'b, as sixteen independent sums.

    Products are rounded before they are added. A compiler that may choose the order chooses anew
    wherever the function is inlined, and the last bits then depend on what was compiled before.
    """
    if a.strides[0] == WIDTH and b.strides[0] == WIDTH:
        return _dot(address(a), address(b), len(a))  # type: ignore[no-any-return]
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@jit_borrowing
def add_product(alpha: float, a: Matrix, b: Matrix, c: Matrix) -> None:
    """C <- C + alpha A'B; A may be a transposed view.

    A and B have equally many rows, and C does not overlap them.
    """
    for start in range(0, len(b), DEPTH):
        _add_product(alpha, a[start : start + DEPTH], b[start : start + DEPTH], c)


@jit_borrowing
def _add_product(alpha: float, a: Matrix, b: Matrix, c: Matrix) -> None:
    step, along = a.strides
    from_b, to_b, to_c = address(b), b.strides[0], c.strides[0]
    rows, columns = c.shape
    for i in range(0, rows, ROWS):
        left = min(ROWS, rows - i)
        from_a, from_c = address(a) + i * along, address(c) + i * to_c
        operands = (from_a, step, along, from_b, to_b, from_c, to_c, len(b), left, columns)
        if left > HALF:
            _add_tiles(ROWS, alpha, operands)
        elif left > QUARTER:
            _add_tiles(HALF, alpha, operands)
        else:
            _add_tiles(QUARTER, alpha, operands)


@jit_borrowing
def add_square(alpha: float, a: Matrix, c: Matrix) -> None:
    """C <- C + alpha A'A, the upper triangle; entries near the diagonal change below it too."""
    size = len(c)
    for start in range(0, len(a), DEPTH):
        rows = a[start : start + DEPTH]
        for i in range(0, size, ROWS):
            end = min(i + ROWS, size)
            _add_product(alpha, rows[:, i:end], rows[:, i:size], c[i:end, i:size])


@jit_borrowing
def solve_product(upper: Matrix, a: Matrix, b: Matrix, c: Matrix, backwards: bool) -> None:
    """C <- R'^-1 (C - A'B), or R^-1 (C - A'B) backwards, for at most ROWS rows of C."""
    rows, columns = c.shape
    if rows == ROWS:
        along = (address(a), *a.strides, address(b), b.strides[0], address(c), c.strides[0])
        operands = (*along, len(b), rows, columns)
        if backwards:
            _solve_tiles(1, address(upper), upper.strides[0], operands)
        else:
            _solve_tiles(0, address(upper), upper.strides[0], operands)
        return
    add_product(-1.0, a, b, c)
    for step in range(rows):
        i = rows - 1 - step if backwards else step
        for j in range(i + 1, rows) if backwards else range(i):
            subtract(c[i], upper[min(i, j), max(i, j)], c[j])
        _multiply(c[i], 1.0 / upper[i, i])


@jit_borrowing
def factor_block(block: Matrix) -> bool:
    """F <- R with R'R = F for at most ROWS rows; False if F is not positive definite.

    Only the upper triangle of F is read, and zeros are written below it.
    """
    size = len(block)
    if size == ROWS:
        return _factor_block(address(block), block.strides[0])  # type: ignore[no-any-return]
    for i in range(size):
        for j in range(i):
            subtract(block[i, i:], block[j, i], block[j, i:])
        if not block[i, i] > 0.0:
            return False
        _multiply(block[i, i:], 1.0 / math.sqrt(block[i, i]))
        for j in range(i):
            block[i, j] = 0.0
    return True


@jit_borrowing
def subtract(row: Vector, factor: float, other: Vector) -> None:
    """Subtract a multiple of another row from a row."""
    for k in range(len(row)):
        row[k] -= factor * other[k]


@jit_borrowing
def _multiply(row: Vector, factor: float) -> None:
    for k in range(len(row)):
        row[k] *= factor


# Instructions ----------------------------------------------------------------------------------


@intrinsic  # type: ignore[untyped-decorator]
def address(_context: Any, array: Any) -> Any:
    """Where the first entry of an array is in memory."""
    if array.dtype != types.float64:
        raise TypingError(f"kernels compute with float64, not with {array.dtype}")

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, values[0]).data
        return builder.ptrtoint(data, _INT)

    return types.int64(array), generate


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def _add_tiles(_context: Any, height: Any, alpha: Any, operands: Any) -> Any:
    """C <- C + alpha A'B for a few rows of C, in tiles of this height."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        operands = _Operands(*cgutils.unpack_tuple(builder, values[2]))
        _for_all_columns(_Tile(builder, operands, height.literal_value, values[1]))
        return context.get_dummy_value()

    return types.void(height, types.float64, types.unliteral(operands)), generate


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def _solve_tiles(_context: Any, backwards: Any, upper: Any, step: Any, operands: Any) -> Any:
    """`solve_product` for ROWS rows of C; R has an address and a distance between its rows."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        _, upper, step, packed = values
        operands = _Operands(*cgutils.unpack_tuple(builder, packed))
        tile = _Tile(builder, operands, ROWS, _DOUBLE(-1.0))
        tile.solve(upper, step, bool(backwards.literal_value))
        _for_all_columns(tile)
        return context.get_dummy_value()

    return types.void(backwards, types.int64, types.int64, types.unliteral(operands)), generate


@intrinsic  # type: ignore[untyped-decorator]
def _factor_block(_context: Any, block: Any, step: Any) -> Any:
    """`factor_block` for ROWS rows, which are this many bytes apart."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        block, step = values
        places = {
            (i, j): builder.inttoptr(
                builder.add(builder.add(block, builder.mul(step, _INT(i))), _INT(WIDTH * j)),
                _DOUBLE.as_pointer(),
            )
            for i in range(ROWS)
            for j in range(ROWS)
        }
        entry = {
            (i, j): builder.load(pointer) if i <= j else _DOUBLE(0.0)
            for (i, j), pointer in places.items()
        }
        root = builder.module.declare_intrinsic("llvm.sqrt", [_DOUBLE])
        positive = _BIT(1)
        for i in range(ROWS):
            above_zero = builder.fcmp_ordered(">", entry[i, i], _DOUBLE(0.0))
            positive = builder.and_(positive, above_zero)
            inverse = builder.fdiv(_DOUBLE(1.0), builder.call(root, [entry[i, i]]))
            for k in range(i, ROWS):
                entry[i, k] = builder.fmul(entry[i, k], inverse)
            for j in range(i + 1, ROWS):
                factor = builder.fneg(entry[i, j])
                for k in range(j, ROWS):
                    entry[j, k] = _multiply_add(builder, factor, entry[i, k], entry[j, k])
        for place, pointer in places.items():
            builder.store(entry[place], pointer)
        return positive

    return types.boolean(types.int64, types.int64), generate


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """A product and a sum, rounded once where the processor can."""
    product = builder.fmul(a, b, flags=("contract",))
    return builder.fadd(product, c, flags=("contract",))


class _Operands(NamedTuple):
    """Addresses, and distances in bytes; every one is an integer in compiled code."""

    a: Any
    a_step: Any  # from one row of A to the next
    a_along: Any  # from one entry of a row to the next
    b: Any
    b_step: Any
    c: Any
    c_step: Any
    count: Any  # rows of A and B
    rows: Any  # of C
    columns: Any


class _Registers:
    """Writes the instructions that move vectors between memory and registers."""

    def __init__(self, builder: Any, lanes: int) -> None:
        self.builder = builder
        self.lanes = lanes
        self.vector = ir.VectorType(_DOUBLE, lanes)
        self.zero = ir.Constant(self.vector, [0.0] * lanes)

    def filled(self, value: Any) -> Any:
        """A register filled with one value."""
        kind = ir.VectorType(value.type, self.lanes)
        one = self.builder.insert_element(ir.Constant(kind, ir.Undefined), value, _SHORT(0))
        everywhere = ir.Constant(ir.VectorType(_SHORT, self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(one, one, everywhere)

    def number(self, place: Any) -> Any:
        """A register filled with the number at an address."""
        pointer = self.builder.inttoptr(place, _DOUBLE.as_pointer())
        return self.filled(self.builder.load(pointer))

    def mask(self, count: Any, register: int) -> Any:
        """Which entries of a register are among the first ``count`` of a row."""
        whole = ir.VectorType(_INT, self.lanes)
        entries = range(register * self.lanes, (register + 1) * self.lanes)
        return self.builder.icmp_signed("<", ir.Constant(whole, list(entries)), self.filled(count))

    def load(self, row: Any, register: int, mask: Any = None) -> Any:
        """Entries of a row; zeros where a mask leaves them out."""
        pointer = self._pointer(row, register)
        if mask is None:
            return self.builder.load(pointer, align=WIDTH)
        kinds = [pointer.type, _SHORT, mask.type, self.vector]
        load = self._function("load", ir.FunctionType(self.vector, kinds))
        return self.builder.call(load, [pointer, _SHORT(WIDTH), mask, self.zero])

    def store(self, value: Any, row: Any, register: int, mask: Any = None) -> None:
        """Write entries of a row."""
        pointer = self._pointer(row, register)
        if mask is None:
            self.builder.store(value, pointer, align=WIDTH)
            return
        kinds = [self.vector, pointer.type, _SHORT, mask.type]
        store = self._function("store", ir.FunctionType(ir.VoidType(), kinds))
        self.builder.call(store, [value, pointer, _SHORT(WIDTH), mask])

    def _pointer(self, row: Any, register: int) -> Any:
        place = self.builder.add(row, _INT(register * self.lanes * WIDTH))
        return self.builder.inttoptr(place, self.vector.as_pointer())

    def _function(self, name: str, kind: Any) -> Any:
        full = f"llvm.masked.{name}.v{self.lanes}f64.p0"
        return cgutils.get_or_insert_function(self.builder.module, kind, full)


class _Tile:
    """Writes the instructions for one tile of C.

    A tile may be higher than C has rows left. The last row is then computed more than once, to the
    same result, and is read before it is written.
    """

    def __init__(self, builder: Any, operands: _Operands, height: int, alpha: Any) -> None:
        self.builder = builder
        self.operands = operands
        self.registers = _Registers(builder, LANES)
        self.alpha = self.registers.filled(alpha)
        last = builder.sub(operands.rows, _INT(1))
        places = [
            builder.select(builder.icmp_signed("<", _INT(r), last), _INT(r), last)
            for r in range(height)
        ]
        self.in_a = [builder.mul(place, operands.a_along) for place in places]
        self.in_c = [builder.mul(place, operands.c_step) for place in places]
        self.system: list[tuple[int, dict[int, Any], Any]] = []

    def solve(self, upper: Any, step: Any, backwards: bool) -> None:
        """Solve for every tile, by R', or backwards by R."""
        height = len(self.in_a)
        builder, read = self.builder, self.registers.number
        row = [builder.add(upper, builder.mul(step, _INT(i))) for i in range(height)]
        entry = {
            (i, j): read(builder.add(row[i], _INT(WIDTH * j)))
            for i in range(height)
            for j in range(i, height)
        }
        one = self.registers.filled(_DOUBLE(1.0))
        for i in reversed(range(height)) if backwards else range(height):
            known = range(i + 1, height) if backwards else range(i)
            factors = {j: builder.fneg(entry[min(i, j), max(i, j)]) for j in known}
            self.system.append((i, factors, builder.fdiv(one, entry[i, i])))

    def add(self, first: Any, width: int, columns: Any = None) -> None:
        """The tile from column ``first`` on, ``width`` registers or ``columns`` numbers wide."""
        builder, registers, operands = self.builder, self.registers, self.operands
        masks = [None if columns is None else registers.mask(columns, v) for v in range(width)]
        right = builder.mul(first, _INT(WIDTH))
        sums = self._sums(right, masks)
        rows = [builder.add(builder.add(operands.c, right), offset) for offset in self.in_c]
        tile = [
            [
                _multiply_add(builder, self.alpha, value, registers.load(row, v, masks[v]))
                for v, value in enumerate(values)
            ]
            for row, values in zip(rows, sums, strict=True)
        ]
        for i, factors, inverse in self.system:
            for v in range(width):
                for j, factor in factors.items():
                    tile[i][v] = _multiply_add(builder, factor, tile[j][v], tile[i][v])
                tile[i][v] = builder.fmul(tile[i][v], inverse)
        for row, values in zip(rows, tile, strict=True):
            for v, value in enumerate(values):
                registers.store(value, row, v, masks[v])

    def _sums(self, right: Any, masks: list[Any]) -> list[list[Any]]:
        """sum_j A_jr B_jc, registers by row."""
        builder, registers, operands = self.builder, self.registers, self.operands
        slots = [[cgutils.alloca_once(builder, registers.vector) for _ in masks] for _ in self.in_a]
        for row in slots:
            for slot in row:
                builder.store(registers.zero, slot)
        start_b = builder.add(operands.b, right)
        with cgutils.for_range(builder, operands.count) as loop:
            row_a = builder.add(operands.a, builder.mul(loop.index, operands.a_step))
            row_b = builder.add(start_b, builder.mul(loop.index, operands.b_step))
            of_b = [registers.load(row_b, v, mask) for v, mask in enumerate(masks)]
            for offset, row in zip(self.in_a, slots, strict=True):
                of_a = registers.number(builder.add(row_a, offset))
                for b, slot in zip(of_b, row, strict=True):
                    builder.store(_multiply_add(builder, of_a, b, builder.load(slot)), slot)
        return [[builder.load(slot) for slot in row] for row in slots]


def _for_all_columns(tile: _Tile) -> None:
    """Whole tiles, and a narrower one for the columns that are left."""
    builder, columns = tile.builder, tile.operands.columns
    whole = builder.sdiv(columns, _INT(COLUMNS))
    with cgutils.for_range(builder, whole) as loop:
        tile.add(builder.mul(loop.index, _INT(COLUMNS)), ABREAST)
    done = builder.mul(whole, _INT(COLUMNS))
    rest = builder.sub(columns, done)
    for registers in range(1, ABREAST + 1):
        least = builder.icmp_signed(">", rest, _INT(LANES * (registers - 1)))
        most = builder.icmp_signed("<=", rest, _INT(LANES * registers))
        with builder.if_then(builder.and_(least, most)):
            tile.add(done, registers, rest)


@intrinsic  # type: ignore[untyped-decorator]
def _dot(_context: Any, a: Any, b: Any, size: Any) -> Any:
    """`dot` of two rows of memory."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        a, b, size = values
        registers = _Registers(builder, PARTIAL_SUMS)
        sums = cgutils.alloca_once(builder, registers.vector)
        builder.store(registers.zero, sums)

        def add(chunk: Any, mask: Any = None) -> None:
            offset = builder.mul(chunk, _INT(PARTIAL_SUMS * WIDTH))
            rows = (builder.add(a, offset), builder.add(b, offset))
            product = builder.fmul(*(registers.load(row, 0, mask) for row in rows))
            builder.store(builder.fadd(product, builder.load(sums)), sums)

        whole = builder.sdiv(size, _INT(PARTIAL_SUMS))
        with cgutils.for_range(builder, whole) as loop:
            add(loop.index)
        rest = builder.sub(size, builder.mul(whole, _INT(PARTIAL_SUMS)))
        with builder.if_then(builder.icmp_signed(">", rest, _INT(0))):
            add(whole, registers.mask(rest, 0))
        total, half = builder.load(sums), PARTIAL_SUMS // 2
        while half:
            lower, upper = (
                ir.Constant(ir.VectorType(_SHORT, half), list(range(start, start + half)))
                for start in (0, half)
            )
            total = builder.fadd(
                builder.shuffle_vector(total, total, lower),
                builder.shuffle_vector(total, total, upper),
            )
            half //= 2
        return builder.extract_element(total, _SHORT(0))

    return types.float64(types.int64, types.int64, types.int64), generate
