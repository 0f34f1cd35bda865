"""Files of models: the library's own and those of others. The ending of a path says which."""

from suffice.formats.native import FORMATS, Format, check_writable, read, register, write

__all__ = ["FORMATS", "Format", "check_writable", "read", "register", "write"]
