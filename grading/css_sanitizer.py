"""Clean the styles of a student's HTML: keep only declarations about fonts, colours and boxes."""

from grading._untyped import Declaration, FunctionBlock, Node, parse_blocks_contents, serialize

TYPE_PROPERTIES = {
    "color",
    "font-family",
    "font-size",
    "font-style",
    "font-variant-numeric",
    "font-weight",
    "line-height",
}
BOX_PROPERTIES = {
    "border",
    "border-collapse",
    "border-left",
    "display",
    "flex-wrap",
    "gap",
    "margin",
    "max-width",
    "padding",
}
LAYOUT_PROPERTIES = {
    "align-items",
    "background-color",
    "caption-side",
    "text-align",
    "vertical-align",
    "white-space",
    "width",
}
PROPERTIES = TYPE_PROPERTIES | BOX_PROPERTIES | LAYOUT_PROPERTIES
COLOUR_FUNCTIONS = {"hsl", "hsla", "rgb", "rgba"}  # the functions that a value may use
SIMPLE_TOKENS = {"dimension", "hash", "ident", "literal", "number", "percentage", "string", "whitespace"}


def safe_style(style: str) -> str:
    """Return the declarations of a ``style`` attribute that are known to be harmless.

    A function may contain neither blocks nor functions, so nothing here recurses, however deeply a style is nested.
    """
    parts = parse_blocks_contents(style, skip_comments=True, skip_whitespace=True)
    return str(serialize([part for part in parts if isinstance(part, Declaration) and _is_safe(part)]))


def _is_safe(declaration: Declaration) -> bool:
    return declaration.lower_name in PROPERTIES and all(map(_is_safe_value, declaration.value))


def _is_safe_value(part: Node) -> bool:
    if isinstance(part, FunctionBlock):
        return part.lower_name in COLOUR_FUNCTIONS and all(inner.type in SIMPLE_TOKENS for inner in part.arguments)
    return part.type in SIMPLE_TOKENS
