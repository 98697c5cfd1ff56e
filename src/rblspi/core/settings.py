"""Settings of an algorithm, declared once: name, default and check."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class Setting(Generic[Value]):
    """An attribute that the constructor takes by name, and that is checked when it is set.

    Parameters
    ----------
    default : object
        None stands for a setting that is not given, and is not checked.
    check : callable
        ``check(name, value)`` returns the value to keep or raises an error; see `core.check`.
    """

    name: str

    def __init__(self, default: Value, check: Callable[[str, Any], Value]) -> None:
        self.default, self.check = default, check

    def __set_name__(self, kind: type, name: str) -> None:
        self.name = name

    def __get__(self, owner: Any, kind: type | None = None) -> Value:
        """The value in an object; in the class, the default."""
        return self.default if owner is None else owner.__dict__[self.name]

    def __set__(self, owner: Any, value: Any) -> None:
        """Check a value and keep it."""
        missing = value is None and self.default is None
        owner.__dict__[self.name] = None if missing else self.check(self.name, value)


def settings_of(kind: type) -> dict[str, Setting[Any]]:
    """The settings of a class by name, its own before inherited ones."""
    found: dict[str, Setting[Any]] = {}
    for base in kind.__mro__:
        for name, value in vars(base).items():
            if isinstance(value, Setting):
                found.setdefault(name, value)
    return found


def set_all(owner: Any, given: Mapping[str, Any]) -> None:
    """Set all settings of an object to the given values, or to their defaults."""
    settings = settings_of(type(owner))
    for name in given:
        if name not in settings:
            raise TypeError(
                f"{type(owner).__name__} has no setting {name!r}, only {', '.join(settings)}"
            )
    for name, setting in settings.items():
        setattr(owner, name, given.get(name, setting.default))


def signature_of(kind: type) -> inspect.Signature:
    """The signature of a constructor that takes settings, as `help` and editors show it."""
    _, *parameters = inspect.signature(kind.__init__).parameters.values()  # type: ignore[misc]
    if parameters and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD:
        parameters.pop()
        taken = {parameter.name for parameter in parameters}
        parameters += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=setting.default)
            for name, setting in settings_of(kind).items()
            if name not in taken
        ]
    return inspect.Signature(parameters)
