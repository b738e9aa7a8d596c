"""What normalmesh raises and warns with."""


class NormalMeshError(ValueError):
    """An input that cannot be used. The message says what was given, what was expected and what to do."""


class NormalMeshWarning(UserWarning):
    """The input was usable, but something about it was repaired or looks wrong."""
