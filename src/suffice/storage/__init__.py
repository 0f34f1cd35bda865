"""Saving and loading: one versioned container, exact to the bit, written atomically, never pickle.

`save` and `load` know two endings. ``.json`` is one readable JSON text with the arrays inside; ``.suffice`` is a zip of
that JSON (``model.json``) and one flat file of all arrays (``arrays.npy``), for large content. `docs/file-format.md`
describes both.

>>> from suffice import storage
>>> storage.loads(storage.dumps({"rate": 0.1, ("a", 1): b"bytes"}))
{'rate': 0.1, ('a', 1): b'bytes'}
"""

from suffice.storage.document import FORMAT_VERSION, dumps, loads
from suffice.storage.encoding import exported_class, register
from suffice.storage.files import ENDINGS, ending_of, load, save

__all__ = ["ENDINGS", "FORMAT_VERSION", "dumps", "ending_of", "exported_class", "load", "loads", "register", "save"]
