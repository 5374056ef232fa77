"""Turns functions into handlers: validates their signatures, params and outputs, and runs them."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import TypeAdapter, ValidationError

from .._model import encode
from ..errors import FatalError
from ..models import WorkerTask
from .context import Context, ThreadContext

#: Annotations without information.
_OPEN = (inspect.Parameter.empty, Any, None, dict, Mapping)


@dataclass(frozen=True)
class Handler:
    """A function with its name and the types from its annotations."""

    name: str
    function: Callable[..., Any]
    is_async: bool
    takes_context: bool
    #: The type of the params; None: unchecked.
    params: TypeAdapter[Any] | None
    #: The type of the result; None: any object.
    output: TypeAdapter[Any] | None
    takes_task: bool

    async def run(
        self, task: WorkerTask, context: Context | ThreadContext, threads: Executor
    ) -> dict[str, Any]:
        """The output, ready to be sent.

        Raises:
            FatalError: params or output do not match the annotations.
            Exception: whatever the function raises.
        """
        arguments = [self._argument(task), *([context] if self.takes_context else [])]
        if self.is_async:
            return self._checked(await self.function(*arguments))
        call = partial(contextvars.copy_context().run, self.function, *arguments)
        return self._checked(await asyncio.get_running_loop().run_in_executor(threads, call))

    def _argument(self, task: WorkerTask) -> Any:
        if self.takes_task:
            return task
        params = {} if task.params is None else task.params
        if self.params is None:
            return params
        try:
            return self.params.validate_python(params)
        except ValidationError as error:
            message = f"the params of the handler {self.name} are not valid: {_told(error)}"
            raise FatalError(message) from error

    def _checked(self, result: Any) -> dict[str, Any]:
        if result is None:
            return {}
        try:
            output = self._dumped(result)
        except (ValidationError, TypeError, ValueError, RecursionError) as error:
            why = _told(error) if isinstance(error, ValidationError) else str(error)
            message = f"the output of the handler {self.name} is not valid: {why}"
            raise FatalError(message) from error
        if not isinstance(output, dict):
            message = f"the output of the handler {self.name} must be an object"
            raise FatalError(f"{message}, not a {type(result).__name__}")
        return output

    def _dumped(self, result: Any) -> Any:
        if self.output is None:
            return encode(result)
        valid = self.output.validate_python(result)
        return encode(self.output.dump_python(valid, mode="json", by_alias=True))


def bind(name: str, function: Callable[..., Any]) -> Handler:
    """
    Raises:
        TypeError: it cannot be called with the params, or with the params and a context.
    """
    if not callable(function):
        raise TypeError(f"the handler {name} is not a function: {function!r}")
    try:
        signature = inspect.signature(function, eval_str=True)
    except NameError as error:
        raise TypeError(f"the annotations of the handler {name} cannot be read: {error}") from error
    taken = _positional(name, signature)
    first = taken[0].annotation
    output = signature.return_annotation
    return Handler(
        name=name,
        function=function,
        is_async=_is_async(function),
        takes_context=len(taken) > 1,
        params=None if first in _OPEN or first is WorkerTask else TypeAdapter(first),
        output=None if output in _OPEN else TypeAdapter(output),
        takes_task=first is WorkerTask,
    )


def _positional(name: str, signature: inspect.Signature) -> list[inspect.Parameter]:
    parameters = list(signature.parameters.values())
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [one for one in parameters if one.kind in kinds]
    required = [one for one in parameters if one.default is inspect.Parameter.empty]
    too_many = [one for one in required if one.kind in kinds][2:]
    keywords = [one for one in required if one.kind is inspect.Parameter.KEYWORD_ONLY]
    if not positional or too_many or keywords:
        raise TypeError(
            f"the handler {name} must accept its params, or its params and a context; "
            f"its signature is {signature}"
        )
    given = [one for one in positional if one.default is inspect.Parameter.empty]
    return given or positional[:1]


def _told(error: ValidationError) -> str:
    """Without the values, which may be confidential."""
    return "; ".join(
        f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}"
        for one in error.errors(include_url=False, include_input=False)
    )


def _is_async(function: Callable[..., Any]) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004  (its code, not whether it is there)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
