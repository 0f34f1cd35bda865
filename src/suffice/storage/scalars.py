"""Single values that JSON has no word for: how each is taken apart and put together again.

`WRITERS` finds a tag and the parts of a value by the name of its type; `READERS` puts the parts of a tag together.
Parts are themselves values that can be written. Nothing is imported for a type that does not occur: pandas' own types
are found by name.
"""

from __future__ import annotations

import base64
import datetime
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import OptionError, require

if TYPE_CHECKING:
    from decimal import Decimal

Parts = dict[str, Any]

#: The words for floats that JSON cannot write.
SPECIAL: Mapping[str, float] = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
#: Decimals with larger exponents would become integers of that many digits in the hands of ``int()``.
MAX_EXPONENT = 10_000
#: NumPy's dates and spans of time: an optional step, then a unit.
TIME_TYPE = re.compile(r"(datetime64|timedelta64)\[[0-9]{0,9}[A-Za-zμ]{1,2}\]|timedelta64")


def type_name(value: object) -> str:
    """The first part of the module and the name of a value's type: ``"pandas.Timestamp"``, ``"builtins.bytes"``."""
    kind = type(value)
    return f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"


# --------------------------------------------------------------------------------------------------------------------
# The standard library
# --------------------------------------------------------------------------------------------------------------------


def _read_float(value: str) -> float:
    return SPECIAL[value]


def _read_text(**parts: str) -> str:
    if set(parts) != {"utf-8"}:
        raise ValueError("expected the part 'utf-8' alone")
    return bytes.fromhex(parts["utf-8"]).decode("utf-8", "surrogatepass")


def _write_bytes(value: bytes) -> Parts:
    return {"base64": base64.b64encode(value).decode("ascii")}


def _read_bytes(**parts: str) -> bytes:
    if set(parts) != {"base64"}:
        raise ValueError("expected the part 'base64' alone")
    return base64.b64decode(parts["base64"], validate=True)


def _write_decimal(value: Decimal) -> Parts:
    if value.is_finite() and abs(value.adjusted()) > MAX_EXPONENT:
        raise OptionError(f"a decimal whose exponent is beyond {MAX_EXPONENT}")
    return {"value": str(value)}


def _read_decimal(value: str) -> Decimal:
    from decimal import Decimal

    if not isinstance(value, str):
        raise TypeError("expected text")
    number = Decimal(value)
    _write_decimal(number)  # The same limit on the exponent.
    return number


def _write_date(value: datetime.date) -> Parts:
    return {"value": value.isoformat()}


def _read_date(value: str) -> datetime.date:
    return datetime.date.fromisoformat(value)


def _write_clock(value: datetime.datetime | datetime.time) -> Parts:
    """Local time, the zone, and which of two equal local times is meant when clocks are set back."""
    return {"value": value.replace(tzinfo=None, fold=0).isoformat(), "fold": value.fold, "zone": value.tzinfo}


def _read_datetime(value: str, fold: int, zone: datetime.tzinfo | None) -> datetime.datetime:
    return datetime.datetime.fromisoformat(value).replace(tzinfo=zone, fold=fold)


def _read_time(value: str, fold: int, zone: datetime.tzinfo | None) -> datetime.time:
    return datetime.time.fromisoformat(value).replace(tzinfo=zone, fold=fold)


def _write_span(value: datetime.timedelta) -> Parts:
    return {"days": value.days, "seconds": value.seconds, "microseconds": value.microseconds}


def _read_span(days: int, seconds: int, microseconds: int) -> datetime.timedelta:
    return datetime.timedelta(days=days, seconds=seconds, microseconds=microseconds)


def _write_offset(value: Any) -> Parts:
    offset, *name = value.__getinitargs__()
    return {"offset": offset, "name": name[0] if name else None}


def _read_offset(offset: datetime.timedelta, name: str | None) -> datetime.timezone:
    return datetime.timezone(offset) if name is None else datetime.timezone(offset, name)


def _write_zone(value: Any) -> Parts:
    if value.key is None:
        raise OptionError("a time zone without a name")
    return {"name": value.key}


def _read_zone(name: str) -> datetime.tzinfo:
    import zoneinfo

    return zoneinfo.ZoneInfo(name)


# --------------------------------------------------------------------------------------------------------------------
# NumPy and pandas
# --------------------------------------------------------------------------------------------------------------------


def _write_moment(value: np.datetime64 | np.timedelta64) -> Parts:
    if TIME_TYPE.fullmatch(value.dtype.name) is None:
        raise OptionError(f"a value of type {value.dtype}")
    return {"dtype": value.dtype.name, "value": int(value.view(np.int64))}


def _read_moment(dtype: str, value: int) -> Any:
    if TIME_TYPE.fullmatch(dtype) is None or type(value) is not int:
        raise ValueError(f"{dtype!r} is no type of date or time")
    return np.array(value, dtype=np.int64).view(dtype)[()]


def _pandas() -> Any:
    return require("pandas", extra="all", purpose="Reading a file that holds pandas values")


def _write_timestamp(value: Any) -> Parts:
    zone = value.tz
    if type(zone).__module__.partition(".")[0] == "pytz":  # What older versions of pandas make of a zone's name.
        zone = _read_zone(str(zone))
    return {"utc": value.asm8, "zone": zone}


def _read_timestamp(utc: np.datetime64, zone: datetime.tzinfo | None) -> Any:
    if not isinstance(utc, np.datetime64):
        raise TypeError("expected a datetime64")
    moment = _pandas().Timestamp(utc)
    return moment if zone is None else moment.tz_localize("UTC").tz_convert(zone)


def _write_timedelta(value: Any) -> Parts:
    return {"value": value.asm8}


def _read_timedelta(value: np.timedelta64) -> Any:
    if not isinstance(value, np.timedelta64):
        raise TypeError("expected a timedelta64")
    return _pandas().Timedelta(value)


def _write_interval(value: Any) -> Parts:
    return {"left": value.left, "right": value.right, "closed": value.closed}


def _read_interval(left: Any, right: Any, closed: str) -> Any:
    return _pandas().Interval(left, right, closed=closed)


def _write_period(value: Any) -> Parts:
    return {"ordinal": value.ordinal, "frequency": value.freqstr}


def _read_period(ordinal: int, frequency: str) -> Any:
    if type(ordinal) is not int or not isinstance(frequency, str):
        raise TypeError("expected an integer and text")
    return _pandas().Period(ordinal=ordinal, freq=frequency)


#: Type name -> tag and the function that takes a value apart.
WRITERS: Mapping[str, tuple[str, Callable[[Any], Parts]]] = {
    "builtins.bytes": ("bytes", _write_bytes),
    "decimal.Decimal": ("decimal", _write_decimal),
    "datetime.date": ("date", _write_date),
    "datetime.datetime": ("datetime", _write_clock),
    "datetime.time": ("time", _write_clock),
    "datetime.timedelta": ("timedelta", _write_span),
    "datetime.timezone": ("offset", _write_offset),
    "zoneinfo.ZoneInfo": ("zone", _write_zone),
    "numpy.datetime64": ("numpy-time", _write_moment),
    "numpy.timedelta64": ("numpy-time", _write_moment),
    "pandas.Timestamp": ("timestamp", _write_timestamp),
    "pandas.Timedelta": ("pandas-timedelta", _write_timedelta),
    "pandas.Interval": ("interval", _write_interval),
    "pandas.Period": ("period", _write_period),
}

#: Tag -> the function that puts the parts together; other or missing parts are an error.
READERS: Mapping[str, Callable[..., Any]] = {
    "float": _read_float,
    "str": _read_text,
    "bytes": _read_bytes,
    "decimal": _read_decimal,
    "date": _read_date,
    "datetime": _read_datetime,
    "time": _read_time,
    "timedelta": _read_span,
    "offset": _read_offset,
    "zone": _read_zone,
    "numpy-time": _read_moment,
    "timestamp": _read_timestamp,
    "pandas-timedelta": _read_timedelta,
    "interval": _read_interval,
    "period": _read_period,
}
