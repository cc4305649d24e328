"""Exporters: what is said about calls outside this process (docs/results.md).

Nothing here is imported by the rest of the package, and an exporter's own library is imported when one is
installed. While none is, a call costs what it cost before.
"""

from codemode.exporters.otel import otel_exporter
from codemode.exporters.relay import relay_exporter

__all__ = ["otel_exporter", "relay_exporter"]
