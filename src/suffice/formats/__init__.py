"""Files of models: the library's own and those of others. The ending of a path says which."""

from suffice.formats.native import FORMATS, read, write

__all__ = ["FORMATS", "read", "write"]
