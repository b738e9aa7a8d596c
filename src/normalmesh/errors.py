"""What normalmesh raises and warns with."""


class NormalMeshError(ValueError):
    """An input that cannot be used. The message says what was given, what was expected and what to do."""


class NormalMeshWarning(UserWarning):
    """The input was usable, but something about it was repaired or looks wrong."""


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape as people write it: 512×640."""
    return "×".join(map(str, shape)) or "a single number"
