"""Patterns match paths as the settings of a library promise."""

import pytest

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
