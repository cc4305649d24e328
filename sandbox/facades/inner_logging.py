# ruff: noqa: A002, N802, N803 -- the names and signatures are the library's
"""`logging` for programs: loggers, levels, formats and handlers, whose lines go to the program's own output.

Knows: what the standard library's `logging` writes. Does not know: anything else; this text runs as a
program does.
"""

from __future__ import annotations

import sys
import time
from typing import Any

__all__ = [
    "CRITICAL", "DEBUG", "ERROR", "FATAL", "INFO", "NOTSET", "WARN", "WARNING", "Filter", "Formatter",
    "Handler", "LogRecord", "Logger", "LoggerAdapter", "NullHandler", "StreamHandler", "addLevelName",
    "basicConfig", "captureWarnings", "critical", "debug", "disable", "error", "exception", "fatal",
    "getLevelName", "getLogger", "info", "log", "root", "shutdown", "warn", "warning",
]  # fmt: skip

CRITICAL = FATAL = 50
ERROR = 40
WARNING = WARN = 30
INFO = 20
DEBUG = 10
NOTSET = 0

_names: dict[int, str] = {50: "CRITICAL", 40: "ERROR", 30: "WARNING", 20: "INFO", 10: "DEBUG", 0: "NOTSET"}
_levels: dict[str, int] = {**{name: level for level, name in _names.items()}, "WARN": 30, "FATAL": 50}
_start = time.time()


def _level(given: Any) -> int:
    if isinstance(given, str):
        if given not in _levels:
            raise ValueError(f"Unknown level: {given!r}")
        return _levels[given]
    if not isinstance(given, int):
        raise TypeError(f"Level not an integer or a valid string: {given!r}")
    return given


def addLevelName(level: int, levelName: str) -> None:
    """Name a level."""
    _names[level] = levelName
    _levels[levelName] = level


def getLevelName(level: Any) -> Any:
    """Return the name of a level, or the level of a name."""
    if level in _names:
        return _names[level]
    return _levels.get(level, f"Level {level}")


class LogRecord:
    """One thing to log."""

    def __init__(
        self, name: str, level: int, pathname: str, lineno: int, msg: Any, args: Any, exc_info: Any = None
    ) -> None:
        self.name = name
        self.msg = msg
        if len(args) == 1 and isinstance(args[0], dict) and args[0]:
            args = args[0]
        self.args = args
        self.levelno = level
        self.levelname = getLevelName(level)
        self.pathname, self.filename, self.module = pathname, "program", "program"
        self.lineno = lineno
        self.funcName = "<module>"
        self.exc_info = exc_info
        self.exc_text: str | None = None
        self.stack_info = None
        self.created = time.time()
        self.msecs = int((self.created - int(self.created)) * 1000)
        self.relativeCreated = (self.created - _start) * 1000
        self.thread, self.threadName, self.process, self.processName = 1, "MainThread", 1, "MainProcess"
        self.taskName = None

    def getMessage(self) -> str:
        """Return the message with its arguments."""
        text = str(self.msg)
        return text % self.args if self.args else text

    def __repr__(self) -> str:
        return f'<LogRecord: {self.name}, {self.levelno}, {self.pathname}, {self.lineno}, "{self.msg}">'


class Formatter:
    """Makes a line of a record."""

    default_time_format = "%Y-%m-%d %H:%M:%S"
    default_msec_format = "%s,%03d"

    def __init__(
        self, fmt: str | None = None, datefmt: str | None = None, style: str = "%", validate: bool = True,
        *, defaults: Any = None,
    ) -> None:  # fmt: skip
        if style not in ("%", "{", "$"):
            raise ValueError("Style must be one of: %,{,$")
        plain = {"%": "%(message)s", "{": "{message}", "$": "${message}"}
        self._fmt = fmt or plain[style]
        self.datefmt = datefmt
        self._style = style
        self._defaults = dict(defaults or {})

    def usesTime(self) -> bool:
        """Say whether lines show the time."""
        return "asctime" in self._fmt

    def formatTime(self, record: LogRecord, datefmt: str | None = None) -> str:
        """Return the time of a record."""
        moment = time.localtime(record.created)
        if datefmt:
            return time.strftime(datefmt, moment)
        return self.default_msec_format % (time.strftime(self.default_time_format, moment), record.msecs)

    def formatException(self, ei: Any) -> str:
        """Return the text of an exception; tracebacks are not visible to programs."""
        kind, value = ei[0], ei[1]
        text = str(value)
        name = (
            kind.__name__
            if kind.__module__ in ("builtins", "__main__")
            else f"{kind.__module__}.{kind.__name__}"
        )
        return f"{name}: {text}" if text else str(name)

    def formatMessage(self, record: LogRecord) -> str:
        """Fill the format."""
        values = {**self._defaults, **record.__dict__}
        if self._style == "%":
            return self._fmt % values
        if self._style == "{":
            return self._fmt.format(**values)
        text = self._fmt
        for name in sorted(values, key=len, reverse=True):
            text = text.replace("${" + name + "}", str(values[name])).replace("$" + name, str(values[name]))
        return text

    def format(self, record: Any) -> str:
        """Return the line of a record."""
        record.message = record.getMessage()
        if self.usesTime():
            record.asctime = self.formatTime(record, self.datefmt)
        line = self.formatMessage(record)
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        return f"{line}\n{record.exc_text}" if record.exc_text else line


class Filter:
    """Lets the records of one logger and those below it through."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def filter(self, record: Any) -> bool:
        """Say whether a record passes."""
        return not self.name or record.name == self.name or record.name.startswith(self.name + ".")


class _Filtered:
    """What has filters."""

    def __init__(self) -> None:
        self.filters: list[Any] = []

    def addFilter(self, filter: Any) -> None:
        """Add a filter."""
        if filter not in self.filters:
            self.filters.append(filter)

    def removeFilter(self, filter: Any) -> None:
        """Remove a filter."""
        if filter in self.filters:
            self.filters.remove(filter)

    def filter(self, record: Any) -> Any:
        """Say whether a record passes every filter."""
        return all(
            (each.filter(record) if hasattr(each, "filter") else each(record)) for each in self.filters
        )


class Handler(_Filtered):
    """Takes records and writes them."""

    def __init__(self, level: Any = NOTSET) -> None:
        super().__init__()
        self.level = _level(level)
        self.formatter: Any = None
        self.name: str | None = None

    def setLevel(self, level: Any) -> None:
        """Set the level below which records are dropped."""
        self.level = _level(level)

    def setFormatter(self, fmt: Any) -> None:
        """Set what makes lines of records."""
        self.formatter = fmt

    def format(self, record: Any) -> str:
        """Return the line of a record."""
        line: str = (self.formatter or _DEFAULT).format(record)
        return line

    def emit(self, record: Any) -> None:
        """Write a record."""
        raise NotImplementedError("emit must be implemented by Handler subclasses")

    def handle(self, record: Any) -> Any:
        """Write a record that passes the filters."""
        passed = self.filter(record)
        if passed:
            self.emit(record)
        return passed

    def flush(self) -> None:
        """Do nothing: lines are written at once."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} ({getLevelName(self.level)})>"


class StreamHandler(Handler):
    """Writes lines to a stream, `sys.stderr` if none is named."""

    terminator = "\n"

    def __init__(self, stream: Any = None) -> None:
        super().__init__()
        self.stream = sys.stderr if stream is None else stream

    def setStream(self, stream: Any) -> Any:
        """Change the stream and return the one before."""
        before, self.stream = self.stream, stream
        return before

    def emit(self, record: Any) -> None:
        """Write a record."""
        self.stream.write(self.format(record) + self.terminator)


class NullHandler(Handler):
    """Writes nothing."""

    def emit(self, record: Any) -> None:
        """Drop a record."""


_DEFAULT = Formatter()
_last_resort = StreamHandler()
_last_resort.setLevel(WARNING)
_disabled_up_to = [NOTSET]


class Logger(_Filtered):
    """A named place to log to; what it does not say itself it takes from the logger above it."""

    def __init__(self, name: str, level: Any = NOTSET) -> None:
        super().__init__()
        self.name = name
        self.level = _level(level)
        self.parent: Any = None
        self.propagate = True
        self.handlers: list[Any] = []
        self.disabled = False

    def setLevel(self, level: Any) -> None:
        """Set the level below which nothing is logged."""
        self.level = _level(level)

    def getEffectiveLevel(self) -> int:
        """Return the level of this logger or of the first above it that has one."""
        logger: Any = self
        while logger is not None:
            if logger.level:
                level: int = logger.level
                return level
            logger = logger.parent
        return NOTSET

    def isEnabledFor(self, level: int) -> bool:
        """Say whether a level is logged."""
        return not self.disabled and level > _disabled_up_to[0] and level >= self.getEffectiveLevel()

    def addHandler(self, hdlr: Any) -> None:
        """Add a handler."""
        if hdlr not in self.handlers:
            self.handlers.append(hdlr)

    def removeHandler(self, hdlr: Any) -> None:
        """Remove a handler."""
        if hdlr in self.handlers:
            self.handlers.remove(hdlr)

    def hasHandlers(self) -> bool:
        """Say whether anything takes what is logged here."""
        return bool(self._all_handlers())

    def getChild(self, suffix: str) -> Any:
        """Return a logger below this one."""
        return getLogger(suffix if self is root else f"{self.name}.{suffix}")

    def _all_handlers(self) -> list[Any]:
        found: list[Any] = []
        logger: Any = self
        while logger is not None:
            found.extend(logger.handlers)
            logger = logger.parent if logger.propagate else None
        return found

    def handle(self, record: Any) -> None:
        """Give a record to every handler."""
        if self.disabled or not self.filter(record):
            return
        handlers = self._all_handlers()
        for handler in handlers or [_last_resort]:
            if record.levelno >= handler.level:
                handler.handle(record)

    def _log(
        self, level: int, msg: Any, args: Any, exc_info: Any = None, extra: Any = None,
        stack_info: Any = None, stacklevel: int = 1,
    ) -> None:  # fmt: skip
        if exc_info:
            if isinstance(exc_info, BaseException):
                exc_info = (type(exc_info), exc_info, None)
            elif not isinstance(exc_info, tuple):
                exc_info = sys.exc_info()
            if exc_info[0] is None:
                exc_info = None
        record = LogRecord(self.name, level, "<program>", 0, msg, args, exc_info or None)
        for name, value in (extra or {}).items():
            setattr(record, name, value)
        self.handle(record)

    def log(self, level: int, msg: Any, *args: Any, **options: Any) -> None:
        """Log at a level."""
        if not isinstance(level, int):
            raise TypeError("level must be an integer")
        if self.isEnabledFor(level):
            self._log(level, msg, args, **options)

    def debug(self, msg: Any, *args: Any, **options: Any) -> None:
        """Log at DEBUG."""
        self.log(DEBUG, msg, *args, **options)

    def info(self, msg: Any, *args: Any, **options: Any) -> None:
        """Log at INFO."""
        self.log(INFO, msg, *args, **options)

    def warning(self, msg: Any, *args: Any, **options: Any) -> None:
        """Log at WARNING."""
        self.log(WARNING, msg, *args, **options)

    def error(self, msg: Any, *args: Any, **options: Any) -> None:
        """Log at ERROR."""
        self.log(ERROR, msg, *args, **options)

    def exception(self, msg: Any, *args: Any, exc_info: Any = True, **options: Any) -> None:
        """Log at ERROR, with the exception that is being handled."""
        self.log(ERROR, msg, *args, exc_info=exc_info, **options)

    def critical(self, msg: Any, *args: Any, **options: Any) -> None:
        """Log at CRITICAL."""
        self.log(CRITICAL, msg, *args, **options)

    warn = warning
    fatal = critical

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} ({getLevelName(self.getEffectiveLevel())})>"


class _RootLogger(Logger):
    """The logger above all others."""


class LoggerAdapter:
    """A logger that adds something to every message."""

    def __init__(self, logger: Any, extra: Any = None) -> None:
        self.logger = logger
        self.extra = extra

    def process(self, msg: Any, kwargs: Any) -> tuple[Any, Any]:
        """Return the message and options to log."""
        kwargs["extra"] = self.extra
        return msg, kwargs

    def log(self, level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
        """Log at a level."""
        if self.logger.isEnabledFor(level):
            msg, kwargs = self.process(msg, kwargs)
            self.logger.log(level, msg, *args, **kwargs)

    def debug(self, msg: Any, *args: Any, **kwargs: Any) -> None:
        """Log at DEBUG."""
        self.log(DEBUG, msg, *args, **kwargs)

    def info(self, msg: Any, *args: Any, **kwargs: Any) -> None:
        """Log at INFO."""
        self.log(INFO, msg, *args, **kwargs)

    def warning(self, msg: Any, *args: Any, **kwargs: Any) -> None:
        """Log at WARNING."""
        self.log(WARNING, msg, *args, **kwargs)

    def error(self, msg: Any, *args: Any, **kwargs: Any) -> None:
        """Log at ERROR."""
        self.log(ERROR, msg, *args, **kwargs)

    def critical(self, msg: Any, *args: Any, **kwargs: Any) -> None:
        """Log at CRITICAL."""
        self.log(CRITICAL, msg, *args, **kwargs)


root = _RootLogger("root", WARNING)
_loggers: dict[str, Any] = {}


def getLogger(name: str | None = None) -> Any:
    """Return the logger of a name, the same one every time."""
    if not name or name == "root":
        return root
    if not isinstance(name, str):
        raise TypeError("A logger name must be a string")
    logger = _loggers.get(name)
    if logger is None:
        logger = _loggers[name] = Logger(name)
        above = name.rpartition(".")[0]
        logger.parent = getLogger(above) if above else root
    return logger


def basicConfig(**options: Any) -> None:
    """Give the root logger a handler, unless it has one."""
    if "filename" in options:
        raise PermissionError("logging to a file is not possible: programs have no file system")
    force = options.pop("force", False)
    if force:
        root.handlers.clear()
    if root.handlers:
        return
    handlers = options.get("handlers")
    if handlers is None:
        handlers = [StreamHandler(options.get("stream"))]
    style = options.get("style", "%")
    plain = {
        "%": "%(levelname)s:%(name)s:%(message)s",
        "{": "{levelname}:{name}:{message}",
        "$": "${levelname}:${name}:${message}",
    }
    line = Formatter(options.get("format", plain.get(style)), options.get("datefmt"), style)
    for handler in handlers:
        if handler.formatter is None:
            handler.setFormatter(line)
        root.addHandler(handler)
    if options.get("level") is not None:
        root.setLevel(options["level"])


def log(level: int, msg: Any, *args: Any, **options: Any) -> None:
    """Log at a level."""
    if not root.handlers:
        basicConfig()
    root.log(level, msg, *args, **options)


def debug(msg: Any, *args: Any, **options: Any) -> None:
    """Log at DEBUG."""
    log(DEBUG, msg, *args, **options)


def info(msg: Any, *args: Any, **options: Any) -> None:
    """Log at INFO."""
    log(INFO, msg, *args, **options)


def warning(msg: Any, *args: Any, **options: Any) -> None:
    """Log at WARNING."""
    log(WARNING, msg, *args, **options)


def error(msg: Any, *args: Any, **options: Any) -> None:
    """Log at ERROR."""
    log(ERROR, msg, *args, **options)


def exception(msg: Any, *args: Any, exc_info: Any = True, **options: Any) -> None:
    """Log at ERROR, with the exception that is being handled."""
    log(ERROR, msg, *args, exc_info=exc_info, **options)


def critical(msg: Any, *args: Any, **options: Any) -> None:
    """Log at CRITICAL."""
    log(CRITICAL, msg, *args, **options)


warn = warning
fatal = critical


def disable(level: Any = CRITICAL) -> None:
    """Log nothing up to a level."""
    _disabled_up_to[0] = _level(level)


def shutdown() -> None:
    """Do nothing: lines are written at once."""


def captureWarnings(capture: bool) -> None:
    """Do nothing: there are no warnings to capture."""
