"""Which relative paths are legal, and that showing them is safe and unambiguous."""

import json
import pickle
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mediaplane.paths import PathRefused, check_rel_path, display, slugify

# Each byte of a path is stored as the Latin-1 character of the same number.
HOSTILE = [
    pytest.param(case["rel"].encode("latin-1"), case["expect"], id=case["id"])
    for case in json.loads((Path(__file__).parents[1] / "data/hostile_paths.json").read_text())
]

# Dense in the characters that decide, so that few examples reach the interesting shapes.
TRICKY_BYTES = st.lists(
    st.sampled_from([b"/", b".", b"..", b"\0", b"\\", b"x", b"\xff", b"\xc2\x9b", b"a" * 250])
).map(b"".join)
ANY_BYTES = st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass"))


def reason_of(raw: bytes) -> str | None:
    try:
        check_rel_path(raw)
    except PathRefused as refused:
        return refused.reason
    return None


def is_legal(raw: bytes) -> bool:
    names = raw.split(b"/")
    return (
        len(raw) < 4096
        and b"\0" not in raw
        and all(name not in {b"", b".", b".."} and len(name) <= 255 for name in names)
    )


ESCAPES = re.compile(r"\\x(..)|\\u(....)|\\U(.{8})|\\(\\)|([^\\])", re.DOTALL)


def undo_display(shown: str) -> bytes:
    def meaning(match: re.Match[str]) -> bytes:
        byte, short, long, backslash, plain = match.groups()
        if byte:
            return bytes.fromhex(byte)
        point = short or long
        return (chr(int(point, 16)) if point else backslash or plain).encode()

    return b"".join(map(meaning, ESCAPES.finditer(shown)))


@pytest.mark.parametrize(("raw", "expect"), HOSTILE)
def test_every_hostile_path_is_judged_as_the_table_says(raw: bytes, expect: str) -> None:
    _, _, reason = expect.partition(":")
    assert reason_of(raw) == (reason or None)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"/etc/passwd", "absolute"),
        (b"//", "absolute"),
        (b"a//b", "empty_component"),
        (b"a/", "empty_component"),
        (b"a/./b", "dot_component"),
        (b"a\0b", "nul"),
        (b"a" * 4096, "too_long"),
        (b"b/" + b"a" * 256, "component_too_long"),
    ],
)
def test_each_way_of_being_illegal_has_its_own_reason(raw: bytes, reason: str) -> None:
    assert reason_of(raw) == reason


def test_the_longest_legal_path_has_4095_bytes() -> None:
    longest = b"/".join([b"a" * 255] * 16)
    assert len(longest) == 4095
    assert check_rel_path(longest) == longest
    assert reason_of(longest + b"a") == "too_long"


@given(TRICKY_BYTES | ANY_BYTES)
def test_exactly_the_legal_paths_are_accepted_and_returned_unchanged(raw: bytes) -> None:
    if is_legal(raw):
        assert check_rel_path(raw) == raw
    else:
        assert reason_of(raw) is not None


def test_a_refusal_survives_pickling_and_shows_the_path_safely() -> None:
    copy = pickle.loads(pickle.dumps(PathRefused("nul", b"a\0\x1b[31m")))
    assert copy.reason == "nul"
    assert str(copy).startswith("path refused (nul): 'a\\x00\\x1b[31m'")


@given(TRICKY_BYTES | ANY_BYTES)
@example(b"\x9b")
@example(b"\xc2\x9b")
@example(b"\\x9b")
@example("\U000e0001\U00100000".encode())
def test_display_can_be_undone_so_different_paths_never_look_the_same(raw: bytes) -> None:
    assert undo_display(display(raw)) == raw


@given(TRICKY_BYTES | ANY_BYTES)
def test_display_has_no_control_format_or_line_breaking_characters(raw: bytes) -> None:
    shown = display(raw)
    assert not {unicodedata.category(char) for char in shown} & {
        "Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp",
    }  # fmt: skip
    assert len(shown.splitlines()) <= 1


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("caf\u00e9 \U0001f4f7.jpg".encode(), "caf\u00e9 \U0001f4f7.jpg"),
        ("\u5199\u771f\u30002024.jpg".encode(), "\u5199\u771f\u30002024.jpg"),
        (b"caf\xe9.jpg", r"caf\xe9.jpg"),
        (b"a\nb\tc\x7f", r"a\x0ab\x09c\x7f"),
        (b"\xc2\x9b31m", r"\u009b31m"),
        ("exe\u202egpj.png".encode(), r"exe\u202egpj.png"),
        ("a\u200bb\u2028\ufeff".encode(), r"a\u200bb\u2028\ufeff"),
        (b"\xed\xa0\x80", r"\xed\xa0\x80"),
        ("\ue000\u3164".encode(), r"\ue000\u3164"),
        (b"a\\b", r"a\\b"),
    ],
)
def test_display_keeps_what_is_readable_and_escapes_the_rest(raw: bytes, shown: str) -> None:
    assert display(raw) == shown


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Family Photos 2024", "family-photos-2024"),
        ("  Caf\u00e9 & Stra\u00dfe  ", "cafe-strasse"),
        ("\uff2e\uff21\uff33", "nas"),
        ("\u5199\u771f", "library"),
        ("", "library"),
        ("x" * 62 + " y", "x" * 62),
    ],
)
def test_slugs_are_folded_trimmed_and_never_empty(name: str, slug: str) -> None:
    assert slugify(name) == slug


@given(st.text())
def test_every_slug_is_url_safe_and_is_its_own_slug(name: str) -> None:
    slug = slugify(name)
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", slug)
    assert slugify(slug) == slug
