"""`zoneinfo`: every zone of `tzdata` and the local one, read once, before a worker loses the file system.

Knows: zone names and their data. Does not know: when the zygote locks down.
"""

from __future__ import annotations

import functools
import importlib
import io
import zoneinfo
from typing import Any, NoReturn

from sandbox.facades.appearance import renamed


@functools.cache
def zone_data() -> dict[str, bytes]:
    """Return the raw data of every zone by its key; read from disk the first time."""
    # Plain files and not importlib.resources, which takes five times as long for these six hundred,
    # while somebody waits for the first worker.
    (package,) = importlib.import_module("tzdata").__path__
    keys = _content(f"{package}/zones").decode("ascii").split()
    return {key: _content(f"{package}/zoneinfo/{key}") for key in keys}


def _content(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # see above
        return file.read()


class _ZoneInfoMeta(type):
    """Makes `ZoneInfo(key)` answer from the fixed set."""

    def __call__(cls, key: Any) -> Any:
        """Return the zone of a key."""
        if type(key) is not str:
            raise TypeError(f"a time zone key is a string, not {type(key).__name__!r}")
        return _zone(key)


renamed({_ZoneInfoMeta: "type"})


class ZoneInfo(zoneinfo.ZoneInfo, metaclass=_ZoneInfoMeta):
    """A time zone of the IANA database, by its key; never one of a file."""

    __module__ = "zoneinfo"

    @classmethod
    def no_cache(cls, *_: Any) -> NoReturn:
        """Refuse: it would read a file."""
        raise AttributeError("zones are made by ZoneInfo(key) here")

    from_file = clear_cache = no_cache  # type: ignore[assignment]  # none of them is there


@functools.cache
def _zone(key: str) -> zoneinfo.ZoneInfo:
    data = zone_data().get(key)
    if data is None:
        raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key}")
    from_file: Any = super(ZoneInfo, ZoneInfo).from_file
    zone: zoneinfo.ZoneInfo = from_file(io.BytesIO(data), key=key)
    return zone


def available_timezones() -> set[str]:
    """Return every key `ZoneInfo` takes."""
    return set(zone_data())


def load_zones() -> None:
    """Read what a worker could not read any more: the zone data, and the C library's idea of local time."""
    import time  # noqa: PLC0415  # only here

    zone_data()
    time.localtime()


def zoneinfo_members() -> dict[str, object]:
    """Return what `import zoneinfo` offers."""
    return {
        "ZoneInfo": ZoneInfo,
        "ZoneInfoNotFoundError": zoneinfo.ZoneInfoNotFoundError,
        "available_timezones": available_timezones,
    }
