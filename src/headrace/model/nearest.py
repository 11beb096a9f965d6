"""The known word that was probably meant."""

from __future__ import annotations

from collections.abc import Sequence


def nearest(word: str, known: Sequence[str]) -> str:
    """` (did you mean x?)` for an error message, or nothing if no known word is near."""
    import difflib  # here, since most runs have no mistake to explain

    match = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f" (did you mean `{match[0]}`?)" if match else ""
