"""The names that extensions add to a track, for type checkers: of_extensions.pyi beside this lists them.

The core imports no extension, so the types are in a stub. A test says where it lacks one.
"""


class OfExtensions:
    """What a track has by the names that extensions declare; it is made when it is first asked for."""
