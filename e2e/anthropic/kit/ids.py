"""The two spellings of one id: prefix + `01` + 22 base58 digits, and the UUID behind it."""

from __future__ import annotations

import secrets
import time
import uuid

DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def public_id(prefix: str, value: uuid.UUID) -> str:
    number, text = value.int, ""
    while number:
        number, digit = divmod(number, 58)
        text = DIGITS[digit] + text
    return f"{prefix}_01{text.rjust(22, DIGITS[0])}"


def uuid_of(spelled: str) -> uuid.UUID:
    number = 0
    for digit in spelled.partition("_")[2].removeprefix("01"):
        number = number * 58 + DIGITS.index(digit)
    return uuid.UUID(int=number)


def unknown_uuid() -> uuid.UUID:
    """A well-formed UUIDv7 that no server ever gave out."""
    number = (int(time.time() * 1000) << 80) | secrets.randbits(80)
    number = number & ~(0xF << 76) | (0x7 << 76)
    return uuid.UUID(int=number & ~(0x3 << 62) | (0x2 << 62))


def unknown_id(prefix: str) -> str:
    return public_id(prefix, unknown_uuid())
