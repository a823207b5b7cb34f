"""The few lines of ASN.1 that the private extensions of our certificates need.

Its own file so that `extensions` speaks of meanings only. One value, definite lengths, the shortest
form: the rules of DER. It must not know certificates. Source: ITU-T X.690, sections 8 and 10.
"""

from cluster.errors import Malformed, Misuse

BOOLEAN = 0x01
INTEGER = 0x02
UTF8_TEXT = 0x0C
SEQUENCE = 0x30

_TEXT_BYTES_MAX = 255
_NUMBER_BYTES_MAX = 8


def encode_text(text: str) -> bytes:
    """A UTF8String."""
    return _element(UTF8_TEXT, text.encode())


def encode_number(number: int) -> bytes:
    """An INTEGER that is not negative."""
    if number < 0:
        raise Misuse(f"{number} is negative")
    # One bit more than the number needs, since the highest bit is the sign.
    return _element(INTEGER, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def encode_true() -> bytes:
    """The BOOLEAN that is true. What is false is left out, as DER leaves out a default."""
    return _element(BOOLEAN, b"\xff")


def decode_text(data: bytes) -> str:
    """The text of a UTF8String.

    Raises:
        Malformed: these bytes are none.
    """
    content = _only(data, UTF8_TEXT, "a text")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Malformed("a text that is not UTF-8") from None


def decode_number(data: bytes) -> int:
    """The number of an INTEGER.

    Raises:
        Malformed: these bytes are none, or it is negative, too large or not in its shortest form.
    """
    content = _only(data, INTEGER, "a number")
    is_padded = len(content) > 1 and content[0] == 0 and content[1] < 0x80
    if not content or content[0] >= 0x80 or is_padded or len(content) > _NUMBER_BYTES_MAX:
        raise Malformed("a number that is negative, too large or not in its shortest form")
    return int.from_bytes(content, "big")


def decode_true(data: bytes) -> bool:
    """Always true.

    Raises:
        Malformed: these bytes are not the BOOLEAN that is true.
    """
    if _only(data, BOOLEAN, "a truth") != b"\xff":
        raise Malformed("a truth that is not true")
    return True


def read_element(data: bytes, offset: int) -> tuple[int, int, int]:
    """The tag of the element that begins here, where its content begins, and where it ends.

    Raises:
        Malformed: no element begins here, or it runs past the end.
    """
    if offset + 2 > len(data):
        raise Malformed("an element that is cut short")
    tag, length, start = data[offset], data[offset + 1], offset + 2
    if length >= 0x80:
        count = length - 0x80
        length_bytes = data[start : start + count]
        start += count
        if not 1 <= count <= 3 or len(length_bytes) != count:
            raise Malformed("an element whose length cannot be read")
        length = int.from_bytes(length_bytes, "big")
        if length < 0x80 or length_bytes[0] == 0:
            raise Malformed("an element whose length is not in its shortest form")
    if start + length > len(data):
        raise Malformed("an element that is cut short")
    return tag, start, start + length


def _only(data: bytes, expected: int, what: str) -> bytes:
    tag, start, end = read_element(data, 0)
    if tag != expected or end != len(data):
        raise Malformed(f"not {what}")
    return data[start:end]


def _element(tag: int, content: bytes) -> bytes:
    if len(content) > _TEXT_BYTES_MAX:
        raise Misuse(f"{len(content)} bytes; at most {_TEXT_BYTES_MAX} are written")
    length = len(content)
    if length < 0x80:
        return bytes([tag, length]) + content
    return bytes([tag, 0x81, length]) + content
