"""Elementary functions that take a Python number or a NumPy array alike.

The physics is written once with these: `evaluate` passes plain numbers, where NumPy would cost
ten times more than the arithmetic, and `sweep` passes arrays.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Num = Any
"""A float, an int, or a NumPy array of either; shapes broadcast."""


def maximum(a: Num, b: Num) -> Num:
    """Elementwise larger of `a` and `b`."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.maximum(a, b)
    return a if a >= b else b


def minimum(a: Num, b: Num) -> Num:
    """Elementwise smaller of `a` and `b`."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.minimum(a, b)
    return a if a <= b else b


def where(condition: Num, a: Num, b: Num) -> Num:
    """`a` where `condition` holds, else `b`."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, a, b)
    return a if condition else b


def ceil_div(a: Num, b: Num) -> Num:
    """Smallest whole number not below a / b, for whole numbers."""
    return -(-a // b)


def whole(a: Num) -> Num:
    """A number that is whole, as an integer."""
    return a.astype(np.int64) if isinstance(a, np.ndarray) else int(a)


def power(base: float, exponent: Num) -> Num:
    """`base` to the `exponent`, for a base from 0 to 1; 0 to the 0 is 1."""
    if isinstance(exponent, np.ndarray):
        return np.power(base, exponent)
    return math.pow(base, exponent)


def root_sum_square(a: Num, b: Num) -> Num:
    """Square root of the sum of the squares: near the larger of two that overlap, above it where they are close."""
    squares = a * a + b * b
    return np.sqrt(squares) if isinstance(squares, np.ndarray) else math.sqrt(squares)
