"""How wrong answers without a name are written down."""


def unnamed(**implementations):
    """Wrong versions for which no name in the catalogue would be true; a float16 may be told that digits are lost."""
    return {
        label.replace("_", " "): (implementation, {None, "less-exact"} if "float16" in label else {None})
        for label, implementation in implementations.items()
    }


def with_names(others, **names):
    """Give some of the wrong versions a name of the catalogue that is true of them."""
    spaced = {label.replace("_", " "): name for label, name in names.items()}
    return others | {label: (others[label][0], {name}) for label, name in spaced.items()}
