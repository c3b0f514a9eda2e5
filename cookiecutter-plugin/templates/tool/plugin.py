"""The tool: a model can calculate exactly, instead of guessing."""

from __future__ import annotations

import ast
from decimal import Context, Decimal, DecimalException

from pydantic import BaseModel, ConfigDict, Field
from sideband import Level
from sideband.tools import Tool, ToolContext, tool

__all__ = ["sideband_tools"]

NAME = "{{ cookiecutter.__entry }}"
# Bounds for what a model may send: an exponent such as 9**9**9 would compute for ever.
LONGEST = 500
DEEPEST = 50
LARGEST_EXPONENT = 1_000


class CalculateParams(BaseModel):
    """The parameters of the tool."""

    model_config = ConfigDict(extra="forbid")

    expression: str = Field(
        min_length=1, max_length=LONGEST, description="Numbers, + - * / // % ** and parentheses, such as (3 + 4) * 5."
    )


@tool(f"{NAME}.calculate", level=Level.SAFE, resume="replay")
async def calculate(params: CalculateParams, ctx: ToolContext) -> str:  # noqa: ARG001
    """Calculate exactly, with 50 digits. Use this for every calculation."""
    try:
        return str(value(ast.parse(params.expression.strip(), mode="eval").body, Context(prec=50), 0))
    except SyntaxError:
        raise ValueError(f"not an expression: {params.expression!r}") from None
    except DecimalException as error:
        raise ValueError(f"cannot calculate {params.expression!r}: {type(error).__name__}") from None


def value(node: ast.expr, context: Context, depth: int) -> Decimal:
    """Return the value of an expression."""
    if depth > DEEPEST:
        raise ValueError(f"the expression is nested deeper than {DEEPEST} levels")
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return context.create_decimal(repr(number))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return context.minus(value(operand, context, depth + 1))
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return value(operand, context, depth + 1)
        case ast.BinOp(left=left, op=operator, right=right):
            return apply(operator, value(left, context, depth + 1), value(right, context, depth + 1), context)
    raise ValueError(f"only numbers, + - * / // % ** and parentheses are allowed, got {ast.unparse(node)}")


def apply(operator: ast.operator, left: Decimal, right: Decimal, context: Context) -> Decimal:
    """Return the result of an operator."""
    match operator:
        case ast.Add():
            return context.add(left, right)
        case ast.Sub():
            return context.subtract(left, right)
        case ast.Mult():
            return context.multiply(left, right)
        case ast.Div():
            return context.divide(left, right)
        case ast.FloorDiv():
            return context.divide_int(left, right)
        case ast.Mod():
            return context.remainder(left, right)
        case ast.Pow():
            if abs(right) > LARGEST_EXPONENT:
                raise ValueError(f"the exponent {right} is larger than {LARGEST_EXPONENT}")
            return context.power(left, right)
    raise ValueError(f"the operator {type(operator).__name__} is not supported")


def sideband_tools() -> list[Tool]:
    """Register the tool."""
    return [calculate]
