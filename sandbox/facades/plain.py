"""Modules whose listed names are harmless as they are.

Knows: the names, one list per module. Does not know: modules that need a replacement for some name.
"""

from __future__ import annotations

import array
import base64
import binascii
import bisect
import calendar
import cmath
import collections
import collections.abc
import csv
import datetime as dt
import decimal
import difflib
import fractions
import hashlib
import hmac
import html
import io
import itertools
import math
import numbers
import statistics
import string
import struct
import textwrap
import time
import unicodedata
import urllib.parse
import zlib
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from sandbox.facades.exact import first_exact, on_exact

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_LISTS: tuple[tuple[ModuleType, str], ...] = (
    (
        math,
        """
        acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e erf erfc exp
        exp2 expm1 fabs factorial floor fma fmod frexp fsum gamma gcd hypot inf isclose isfinite isinf isnan
        isqrt lcm ldexp lgamma log log10 log1p log2 modf nan nextafter perm pi pow prod radians remainder
        sin sinh sqrt sumprod tan tanh tau trunc ulp
        """,
    ),
    (
        cmath,
        """
        acos acosh asin asinh atan atanh cos cosh e exp inf infj isclose isfinite isinf isnan log log10 nan
        nanj phase pi polar rect sin sinh sqrt tan tanh tau
        """,
    ),
    (array, "ArrayType array typecodes"),
    (dt, "MAXYEAR MINYEAR UTC date datetime time timedelta timezone tzinfo"),
    (
        calendar,
        """
        Calendar HTMLCalendar TextCalendar IllegalMonthError IllegalWeekdayError MONDAY TUESDAY WEDNESDAY
        THURSDAY FRIDAY SATURDAY SUNDAY JANUARY FEBRUARY calendar day_abbr day_name firstweekday isleap
        leapdays month month_abbr month_name monthcalendar monthrange setfirstweekday timegm weekday
        weekheader
        """,
    ),
    (
        time,
        """
        altzone asctime ctime daylight gmtime localtime mktime monotonic monotonic_ns perf_counter
        perf_counter_ns process_time process_time_ns sleep strftime strptime struct_time time time_ns
        timezone tzname
        """,
    ),
    (collections, "ChainMap Counter OrderedDict UserDict UserList defaultdict deque"),
    (
        collections.abc,
        """
        AsyncGenerator AsyncIterable AsyncIterator Awaitable ByteString Callable Collection Container
        Coroutine Generator Hashable ItemsView Iterable Iterator KeysView Mapping MappingView MutableMapping
        MutableSequence MutableSet Reversible Sequence Set Sized ValuesView
        """,
    ),
    (
        itertools,
        """
        accumulate batched chain combinations combinations_with_replacement compress count cycle dropwhile
        filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest
        """,
    ),
    (
        statistics,
        """
        NormalDist StatisticsError correlation covariance fmean geometric_mean harmonic_mean
        linear_regression mean median median_grouped median_high median_low mode multimode pstdev pvariance
        quantiles stdev variance
        """,
    ),
    (textwrap, "TextWrapper dedent fill indent shorten wrap"),
    (
        string,
        """
        Template ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits printable
        punctuation whitespace
        """,
    ),
    (
        decimal,
        """
        Clamped Context ConversionSyntax Decimal DecimalException DivisionByZero DivisionImpossible
        DivisionUndefined FloatOperation Inexact InvalidContext InvalidOperation MAX_EMAX MAX_PREC MIN_EMIN
        Overflow ROUND_05UP ROUND_CEILING ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN
        ROUND_HALF_UP ROUND_UP Rounded Subnormal Underflow getcontext localcontext setcontext
        """,
    ),
    (fractions, "Fraction"),
    (numbers, "Complex Integral Number Rational Real"),
    (bisect, "bisect bisect_left bisect_right insort insort_left insort_right"),
    (
        base64,
        """
        a85decode a85encode b16decode b16encode b32decode b32encode b32hexdecode b32hexencode b64decode
        b64encode b85decode b85encode decodebytes encodebytes standard_b64decode standard_b64encode
        urlsafe_b64decode urlsafe_b64encode
        """,
    ),
    (
        binascii,
        """
        Error Incomplete a2b_base64 a2b_hex a2b_qp b2a_base64 b2a_hex b2a_qp crc32 crc_hqx hexlify unhexlify
        """,
    ),
    (
        hashlib,
        """
        algorithms_available algorithms_guaranteed blake2b blake2s md5 new pbkdf2_hmac scrypt sha1 sha224
        sha256 sha384 sha3_224 sha3_256 sha3_384 sha3_512 sha512 shake_128 shake_256
        """,
    ),
    (hmac, "HMAC compare_digest digest new"),
    (
        urllib.parse,
        """
        ParseResult SplitResult parse_qs parse_qsl quote quote_from_bytes quote_plus unquote unquote_plus
        unquote_to_bytes urldefrag urlencode urljoin urlparse urlsplit urlunparse urlunsplit
        """,
    ),
    (
        csv,
        """
        Dialect DictReader DictWriter Error QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC
        QUOTE_NOTNULL QUOTE_STRINGS Sniffer excel excel_tab field_size_limit get_dialect list_dialects
        reader register_dialect unix_dialect unregister_dialect writer
        """,
    ),
    (io, "BytesIO SEEK_CUR SEEK_END SEEK_SET StringIO"),
    (
        difflib,
        """
        Differ HtmlDiff IS_CHARACTER_JUNK IS_LINE_JUNK SequenceMatcher context_diff get_close_matches ndiff
        restore unified_diff
        """,
    ),
    (html, "escape unescape"),
    (
        unicodedata,
        """
        bidirectional category combining decimal decomposition digit east_asian_width is_normalized lookup
        mirrored name normalize numeric unidata_version
        """,
    ),
    (struct, "Struct calcsize error iter_unpack pack pack_into unpack unpack_from"),
    (
        zlib,
        """
        DEFLATED DEF_BUF_SIZE MAX_WBITS Z_BEST_COMPRESSION Z_BEST_SPEED Z_DEFAULT_COMPRESSION
        Z_DEFAULT_STRATEGY Z_FINISH Z_FULL_FLUSH Z_NO_FLUSH Z_SYNC_FLUSH adler32 compress compressobj crc32
        decompress decompressobj error
        """,
    ),
)


def plain_members() -> dict[str, dict[str, object]]:
    """Return the members of every listed module; names this Python does not have yet are skipped."""
    return {
        module.__name__: {
            name: _offered(module, getattr(module, name)) for name in listed.split() if hasattr(module, name)
        }
        for module, listed in _LISTS
    }


_EDGES: dict[ModuleType, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    # Written in Python on text and bytes: they call methods of what they are given.
    **dict.fromkeys((base64, hashlib, hmac, html, string, textwrap, urllib.parse), on_exact),
    # Its C code caches by the format, the first argument.
    struct: first_exact,
}
"""What is put around the functions of a module."""


def _offered(module: ModuleType, member: Any) -> object:
    if isinstance(member, set):
        # A program could change what every program of the process shares.
        return frozenset(member)
    if module in _EDGES and type(member) in (FunctionType, BuiltinFunctionType):
        return _EDGES[module](member)
    return member
