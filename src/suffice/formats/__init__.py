"""Files of models: the library's own and those of others. The ending of a path says which."""

from suffice.formats.native import FORMATS, check_writable, read, write

__all__ = ["FORMATS", "check_writable", "read", "write"]
