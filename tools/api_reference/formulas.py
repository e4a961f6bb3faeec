"""Formulas of docstrings, between dollars, as LaTeX.

In: `$gamma (x - mean) / sqrt(variance + eps) + beta$`, which help() shows as it is. Out: LaTeX, which
the site shows as it shows the formulas of other pages. Names next to each other are multiplied, ^ is a
power, |x| a size, and the functions below take what stands in their brackets.
"""

from __future__ import annotations

import ast
import re

FUNCTIONS = ("exp log sqrt sum max min sigmoid hardsigmoid softmax tanh erf abs Gamma B").split()
GREEK = "alpha beta gamma delta epsilon theta mu nu pi rho sigma phi".split()
TOKEN = re.compile(r"\s*(\d+(?:\.\d+)?(?:e-?\d+)?|[A-Za-z]\w*'?|\S)")
PRECEDENCE = {ast.Add: 1, ast.Sub: 1, ast.Mult: 2, ast.Div: 3, ast.Pow: 4}


def latex(formula: str) -> str:
    """The LaTeX of a formula. Raises SyntaxError for one that it cannot read."""
    sides = re.split(r"(<=|>=|[=<>])", formula)
    signs = {"<=": r"\le", ">=": r"\ge"}
    return r"\displaystyle " + " ".join(
        signs.get(part, part) if i % 2 else shown(parsed(part))[0] for i, part in enumerate(sides)
    )


def parsed(text: str) -> ast.expr:
    text = re.sub(r"\|([^|]+)\|", r"abs(\1)", text)
    tokens = TOKEN.findall(text)
    out: list[str] = []
    for i, token in enumerate(tokens):
        last = tokens[i - 1] if i else ""
        ends = last == ")" or (last and re.fullmatch(r"[\w.']+", last))
        begins = token == "(" or re.fullmatch(r"[\w.']+", token)
        if ends and begins and not (token == "(" and last in FUNCTIONS):
            out.append("*")
        out.append({"^": "**"}.get(token, token.replace("'", "_prime")))
    return ast.parse(" ".join(out), mode="eval").body


def shown(node: ast.expr) -> tuple[str, int]:
    """LaTeX, and how tightly its outermost operation binds."""

    def inner(child: ast.expr, least: int) -> str:
        text, level = shown(child)
        return text if level >= least else rf"\left({text}\right)"

    match node:
        case ast.Constant():
            return str(node.value), 9
        case ast.Name():
            return name(node.id), 9
        case ast.UnaryOp(op=ast.USub()):
            return f"-{inner(node.operand, 2)}", 2
        case ast.BinOp(op=ast.Div()):
            return rf"\frac{{{shown(node.left)[0]}}}{{{shown(node.right)[0]}}}", 4
        case ast.BinOp(op=ast.Pow()):
            return f"{inner(node.left, 5)}^{{{shown(node.right)[0]}}}", 4
        case ast.BinOp():
            level = PRECEDENCE[type(node.op)]
            sign = {ast.Add: " + ", ast.Sub: " - ", ast.Mult: r"\,"}[type(node.op)]
            after = level + (not isinstance(node.op, ast.Add))
            return inner(node.left, level) + sign + inner(node.right, after), level
        case ast.Call(func=ast.Name(id=function)):
            inside = r",\, ".join(shown(argument)[0] for argument in node.args)
            if function == "sqrt":
                return rf"\sqrt{{{inside}}}", 9
            if function == "abs":
                return rf"\left|{inside}\right|", 9
            return rf"{name(function)}\left({inside}\right)", 9
    raise SyntaxError(ast.unparse(node))


def name(word: str) -> str:
    prime = "'" if word.endswith("_prime") else ""
    word, _, below = word.removesuffix("_prime").partition("_")
    under = f"_{{{name(below)}}}" if below else ""
    if word in (*GREEK, "exp", "log", "max", "min", "tanh", "cos", "sin", "Gamma"):
        return rf"\{word}{under}{prime}"
    return (word if len(word) == 1 else rf"\mathrm{{{word}}}") + under + prime
