"""`zoneinfo`: every zone of `tzdata` and the local one, read once, before a worker loses the file system.

Knows: zone names and their data. Does not know: when the zygote locks down.
"""

from __future__ import annotations

import functools
import importlib.resources
import io
import zoneinfo
from typing import Any


@functools.cache
def zone_data() -> dict[str, bytes]:
    """Return the raw data of every zone by its key; read from disk the first time."""
    root = importlib.resources.files("tzdata")
    keys = [line for line in (root / "zones").read_text("ascii").splitlines() if line]
    return {key: root.joinpath("zoneinfo", *key.split("/")).read_bytes() for key in keys}


@functools.cache
def _zone(key: str) -> zoneinfo.ZoneInfo:
    data = zone_data().get(key)
    if data is None:
        raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key}")
    return zoneinfo.ZoneInfo.from_file(io.BytesIO(data), key=key)


class _ZoneInfoMeta(type):
    """Makes `ZoneInfo(key)` answer from the fixed set and `isinstance(x, ZoneInfo)` tell."""

    def __call__(cls, key: Any) -> zoneinfo.ZoneInfo:
        if type(key) is not str:
            raise TypeError(f"a time zone key is a string, not {type(key).__name__!r}")
        return _zone(key)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, zoneinfo.ZoneInfo)

    def __setattr__(cls, name: str, value: object) -> None:
        raise AttributeError("class 'ZoneInfo' is read-only")


class ZoneInfo(metaclass=_ZoneInfoMeta):
    """A time zone of the IANA database, by its key."""

    __slots__ = ()


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
