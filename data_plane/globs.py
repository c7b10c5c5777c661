"""Patterns of paths, as the settings of a library have them.

Paths are compared as text, in which a byte that is no UTF-8 stands for one character: so '?' and
'[..]' mean characters, however many bytes those have.
"""

import re
from collections.abc import Callable, Sequence

Matcher = Callable[[bytes], bool]

# '**/' at the start of a name stands for any number of folders, also for none.
_PART = re.compile(
    r"(?P<folders>(?<![^/])\*\*/)|(?P<anything>\*\*+)|(?P<name>\*)|(?P<one>\?)"
    r"|\[(?P<negation>[!^]?)(?P<set>\]?[^\]]*)\]|(?P<plain>.)",
    re.DOTALL,
)
_WILD = {"folders": "(?:.*/)?", "anything": ".*", "name": "[^/]*", "one": "[^/]"}


def compile_globs(patterns: Sequence[str]) -> Matcher | None:
    """Return what tells whether a path matches any of the patterns; None without patterns."""
    if not patterns:
        return None
    match = re.compile("|".join(map(_translate, patterns)), re.DOTALL).fullmatch
    return lambda path: match(path.decode("utf-8", "surrogateescape")) is not None


def _translate(pattern: str) -> str:
    """Return a regular expression of whole paths; a name alone may stand in any folder."""
    prefix = "" if "/" in pattern else "(?:.*/)?"
    return prefix + _PART.sub(_translate_part, pattern.removeprefix("/"))


def _translate_part(part: re.Match[str]) -> str:
    kind = part.lastgroup or ""
    if kind == "set":
        return _translate_set(part["set"], is_negated=bool(part["negation"]))
    return _WILD.get(kind) or re.escape(part["plain"])


def _translate_set(characters: str, *, is_negated: bool) -> str:
    inside = "".join(
        re.escape(single) if single else f"{re.escape(first)}-{re.escape(last)}"
        for first, last, single in re.findall(r"(.)-(.)|(.)", characters, re.DOTALL)
        if single or first <= last
    )
    if is_negated:
        return f"[^/{inside}]"
    return f"(?!/)[{inside}]" if inside else "(?!)"
