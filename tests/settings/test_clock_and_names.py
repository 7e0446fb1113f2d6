"""The injected clock: time, randomness, and uuid7 names."""

import uuid

from hypothesis import given
from hypothesis import strategies as st

from agent_core.base.clock import Clock

STAMPS = st.floats(min_value=0, max_value=2**47 / 1000)
NOISE = st.binary(min_size=10, max_size=10)


@given(STAMPS, NOISE)
def test_every_name_is_a_well_formed_uuid_of_version_seven(stamp: float, noise: bytes) -> None:
    name = Clock(now=lambda: stamp, entropy=lambda size: noise[:size]).new_id()
    parsed = uuid.UUID(name)
    assert str(parsed) == name
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
    assert parsed.int >> 80 == int(stamp * 1000)


@given(st.integers(0, 73))
def test_every_bit_of_noise_that_fits_makes_another_name(bit: int) -> None:
    names = {
        Clock(
            now=lambda: 1.0,
            entropy=lambda size, noise=noise: noise.to_bytes(size, "big"),  # type: ignore[misc]  # the default binds the loop's value
        ).new_id()
        for noise in (0, 1 << bit)
    }
    assert len(names) == 2
