"""What holds for every test."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Time is never asserted: a busy machine must not turn a right answer into a failure.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
