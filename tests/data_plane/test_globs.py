"""Patterns match paths as the settings of a library promise."""

import time
from functools import cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from data_plane.globs import compile_globs


def is_match(pattern: str, path: bytes) -> bool:
    matches = compile_globs([pattern])
    assert matches
    return matches(path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.jpg", b"a.jpg"),
        ("*.jpg", b"trips/rome/a.jpg"),
        ("*.jpg", b".jpg"),
        ("trips/*.jpg", b"trips/a.jpg"),
        ("trips/**", b"trips/rome/a.jpg"),
        ("**/raw/*", b"raw/a"),
        ("**/raw/*", b"trips/rome/raw/a"),
        ("trips/**/a.jpg", b"trips/a.jpg"),
        ("trips/**/a.jpg", b"trips/x/y/a.jpg"),
        ("/a.jpg", b"a.jpg"),
        ("?.jpg", b"a.jpg"),
        ("?.jpg", "é.jpg".encode()),
        ("?.jpg", b"\xff.jpg"),
        ("[é-ü].jpg", "ö.jpg".encode()),
        ("[a-c]", b"b"),
        ("[!a-c]", b"d"),
        ("[]]", b"]"),
        ("[a-]", b"-"),
        ("[[]", b"["),
        ("a[", b"a["),
        ("*", b"a\nb"),
        ("a.b", b"a.b"),
        ("caf\u00e9", "café".encode()),
    ],
)
def test_a_pattern_matches(pattern: str, path: bytes) -> None:
    assert is_match(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.jpg", b"a.jpg/b"),
        ("*.jpg", b"a.jpeg"),
        ("trips", b"trips2"),
        ("trips/*.jpg", b"trips/rome/a.jpg"),
        ("trips/*.jpg", b"my/trips/a.jpg"),
        ("trips/**", b"trips"),
        ("/a.jpg", b"b/a.jpg"),
        ("a?b", b"a/b"),
        ("x/a[!x]b", b"x/a/b"),
        ("x/a[.-0]b", b"x/a/b"),
        ("?.jpg", "éé.jpg".encode()),
        ("??.jpg", "é.jpg".encode()),
        ("[z-a]", b"b"),
        ("[a-c]", b"-"),
        ("a.b", b"axb"),
        ("A", b"a"),
    ],
)
def test_a_pattern_does_not_match(pattern: str, path: bytes) -> None:
    assert not is_match(pattern, path)


def is_match_by_trial(pattern: str, path: str) -> bool:
    """Try all that each wildcard may stand for."""
    whole = pattern.removeprefix("/") if "/" in pattern else f"**/{pattern}"

    @cache
    def fits(at: int, place: int) -> bool:
        left, rest = whole[at:], path[place:]
        if not left:
            return not rest
        if left.startswith("**/") and (at == 0 or whole[at - 1] == "/"):
            folders = [place, *(place + end + 1 for end, char in enumerate(rest) if char == "/")]
            return any(fits(at + 3, there) for there in folders)
        if left.startswith("**"):
            stars = len(left) - len(left.lstrip("*"))
            return any(fits(at + stars, place + length) for length in range(len(rest) + 1))
        if left[0] == "*":
            name = rest.partition("/")[0]
            return any(fits(at + 1, place + length) for length in range(len(name) + 1))
        is_alike = bool(rest) and (left[0] == rest[0] or (left[0] == "?" and rest[0] != "/"))
        return is_alike and fits(at + 1, place + 1)

    return fits(0, 0)


@given(
    st.lists(st.sampled_from(["a", "b", "/", "*", "**", "/**/", "?"]), max_size=9).map("".join),
    st.text("ab/", max_size=14),
)
@example("**x*y**z", "xyzy")
@example("**a*b", "a/xab")
def test_a_pattern_matches_what_its_wildcards_may_stand_for(pattern: str, path: str) -> None:
    assert is_match(pattern, path.encode()) == is_match_by_trial(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 30 + "b", b"a" * 4000),
        ("**a" * 30 + "b", b"a" * 4000),
        ("**/a/" * 30 + "b", b"a/" * 2000),
        ("*a" * 9 + "/b", b"/".join([b"a" * 200] * 20)),
    ],
)
def test_no_path_takes_for_ever_to_be_compared(pattern: str, path: bytes) -> None:
    began = time.process_time()
    assert not is_match(pattern, path)
    # It would take years if every star were tried with every length.
    assert time.process_time() - began < 30


def test_a_path_may_match_any_of_several_patterns() -> None:
    matches = compile_globs(["*.jpg", "a|b", "raw/**"])
    assert matches
    assert [matches(path) for path in (b"x.jpg", b"a|b", b"raw/x", b"a", b"b")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_without_patterns_there_is_nothing_to_ask() -> None:
    assert compile_globs([]) is None
