"""`random`, `secrets` and `uuid`: a generator of the program's own, and nothing that identifies the host.

Knows: those modules. Does not know: when a worker is forked.
"""

from __future__ import annotations

import random
import secrets
import uuid

_METHODS = (
    "betavariate binomialvariate choice choices expovariate gammavariate gauss getrandbits getstate "
    "lognormvariate normalvariate "
    "paretovariate randbytes randint random randrange sample seed setstate shuffle triangular uniform "
    "vonmisesvariate weibullvariate"
)


def random_members() -> dict[str, object]:
    """Return what `import random` offers to one program: a generator nobody else uses, freshly seeded."""
    generator = random.Random()  # noqa: S311  # the program asked for `random`; `secrets` is there too
    members: dict[str, object] = {
        name: getattr(generator, name) for name in _METHODS.split() if hasattr(generator, name)
    }
    return {**members, "Random": random.Random, "SystemRandom": random.SystemRandom}


def secrets_members() -> dict[str, object]:
    """Return what `import secrets` offers."""
    listed = "SystemRandom choice compare_digest randbelow randbits token_bytes token_hex token_urlsafe"
    return {name: getattr(secrets, name) for name in listed.split()}


def uuid_members() -> dict[str, object]:
    """Return what `import uuid` offers: no `uuid1` or `getnode`, which tell the host's address."""
    listed = (
        "NAMESPACE_DNS NAMESPACE_OID NAMESPACE_URL NAMESPACE_X500 RESERVED_FUTURE RESERVED_MICROSOFT "
        "RESERVED_NCS RFC_4122 UUID SafeUUID uuid3 uuid4 uuid5"
    )
    return {name: getattr(uuid, name) for name in listed.split()}
