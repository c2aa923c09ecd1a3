"""How wrong answers without a name are written down."""


def unnamed(**implementations):
    """Wrong versions for which no name in the catalogue would be true."""
    return {label.replace("_", " "): (implementation, {None}) for label, implementation in implementations.items()}
