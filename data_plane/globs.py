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
# Wildcards that lead across folders: where the last of them ends is tried, each other one ends as
# early as it can, because the next one makes up for it. So no path takes for ever to be compared.
_LAST = {"": "", "folders": "(?:.*/)?", "anything": ".*"}
_EARLY = {"": "", "folders": "(?:.*?/)??", "anything": ".*?"}


def compile_globs(patterns: Sequence[str]) -> Matcher | None:
    """Return what tells whether a path matches any of the patterns; None without patterns."""
    if not patterns:
        return None
    match = re.compile("|".join(map(_translate, patterns)), re.DOTALL).fullmatch
    return lambda path: match(path.decode("utf-8", "surrogateescape")) is not None


def _translate(pattern: str) -> str:
    """Return a regular expression of whole paths; a name alone may stand in any folder."""
    # What leads to each part of the pattern, and the pieces of the part, which stars hold together.
    parts: list[tuple[str, list[str]]] = [("" if "/" in pattern else "folders", [""])]
    for found in _PART.finditer(pattern.removeprefix("/")):
        kind = found.lastgroup or ""
        if kind in _LAST:
            parts.append((kind, [""]))
        elif kind == "name":
            parts[-1][1].append("")
        else:
            parts[-1][1][-1] += _translate_one(found)
    *early, (kind, pieces) = parts
    return "".join(_translate_early(*part) for part in early) + _LAST[kind] + _join(pieces)


def _translate_early(kind: str, pieces: Sequence[str]) -> str:
    return f"(?>{_EARLY[kind]}{pieces[0]}{''.join(map(_after_star, pieces[1:]))})"


def _join(pieces: Sequence[str]) -> str:
    first, *others = pieces
    if not others:
        return first
    # The last star has nothing behind it that would make up for what it leaves.
    return f"{first}{''.join(map(_after_star, others[:-1]))}[^/]*{others[-1]}"


def _after_star(piece: str) -> str:
    """Return a star that goes no further than to the first place where this follows."""
    return f"(?>[^/]*?{piece})"


def _translate_one(found: re.Match[str]) -> str:
    """Return what stands for one character."""
    if found.lastgroup == "set":
        return _translate_set(found["set"], is_negated=bool(found["negation"]))
    return "[^/]" if found.lastgroup == "one" else re.escape(found["plain"])


def _translate_set(characters: str, *, is_negated: bool) -> str:
    inside = "".join(
        re.escape(single) if single else f"{re.escape(first)}-{re.escape(last)}"
        for first, last, single in re.findall(r"(.)-(.)|(.)", characters, re.DOTALL)
        if single or first <= last
    )
    if is_negated:
        return f"[^/{inside}]"
    return f"(?!/)[{inside}]" if inside else "(?!)"
