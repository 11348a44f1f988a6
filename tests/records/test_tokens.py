"""The tokenizer of the core, compared with plain Python."""

import itertools
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from maxcosine import core
from maxcosine.records.conversion import texts_of
from maxcosine.records.encoding import normalized
from tests.core.naive_text import column_of_name
from tests.records import naive

PREFIXES = {"word": "body:", "chars": "body~"}
BITS = 18

# Characters that every Python knows: newer versions of Unicode have more letters than the core.
KNOWN = st.characters(exclude_categories=["Cs", "Cn", "Co"]).filter(
    lambda one: unicodedata.ucd_3_2_0.category(one) != "Cn"
)
TEXTS = st.text(
    st.one_of(
        st.sampled_from("aZ09_ .-\n\t\0'"),
        st.sampled_from("éÄßİı東京語々〆ぁんァンー가각ﬁ①Ａ𝒜़́ा٣Ⅳ‿_　\u200d"),
        KNOWN,
    ),
    max_size=40,
)


def tokenize(texts, ngrams=1, chars=(0, 0), bits=0, keep_names=False, letters=None):
    """Features of each text, as lists of names or of columns."""
    strings = normalized(pa.array(texts, pa.string())) if letters is None else None
    starts, letters = texts_of(strings) if letters is None else letters
    indptr, columns, names, name_starts, _ = core.tokenize(
        starts,
        letters,
        b"body:",
        b"body~",
        bits=bits,
        ngrams=ngrams,
        min_chars=chars[0],
        max_chars=chars[1],
        keep_names=keep_names,
    )
    text = names.tobytes()
    all_names = [text[a:b] for a, b in itertools.pairwise(name_starts)]
    found = columns.tolist() if bits else all_names
    return [found[a:b] for a, b in itertools.pairwise(indptr)]


def expected(text, ngrams, chars):
    found = naive.text_features(text, ngrams, chars)
    return [(PREFIXES[part].encode(), rest.encode()) for part, rest in found]


@given(texts=st.lists(TEXTS, max_size=4), ngrams=st.integers(0, 3), chars=st.none() | st.sampled_from([(1, 1), (2, 5)]))
@example(texts=["İSTANBUL ｶﾞ ﬁx 東京都 カタカナ x_y‿z"], ngrams=2, chars=(1, 3))
@example(texts=["", " ", "a", "한국어 텍스트 e\u0301 ǅ"], ngrams=1, chars=(1, 1))
def test_tokens_are_those_of_plain_python(texts, ngrams, chars):
    wanted = [expected(text, ngrams, chars) for text in texts]
    named = tokenize(texts, ngrams, chars or (0, 0))
    assert named == [[prefix + rest for prefix, rest in row] for row in wanted]
    hashed = tokenize(texts, ngrams, chars or (0, 0), BITS)
    assert hashed == [[column_of_name(prefix, rest, BITS) for prefix, rest in row] for row in wanted]


@given(texts=st.lists(st.text(st.characters(max_codepoint=127), max_size=30), max_size=5))
def test_ascii_goes_straight_through_the_core(texts):
    strings = pa.array(texts, pa.string())
    assert normalized(strings) is strings
    assert tokenize(texts, ngrams=2) == [[prefix + rest for prefix, rest in expected(text, 2, None)] for text in texts]


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=4))
@example([b"caf\xe9 au lait", b"\xe6\x9d", b"\xff\xfe", b"a\xcc\x81\xf0\x9f\x98"])
def test_bytes_that_are_not_utf8_separate_words(texts):
    starts = np.cumsum([0, *map(len, texts)])
    letters = np.frombuffer(b"".join(texts), np.uint8)
    found = tokenize(texts, ngrams=1, letters=(starts, letters))
    for text, names in zip(texts, found, strict=True):
        for name in names:
            assert name.removeprefix(b"body:").lower() in text.lower()
    ascii_words = [word for word in "".join(map(chr, texts[0])).split() if word.isascii() and word.isalnum()]
    assert {f"body:{word.lower()}".encode() for word in ascii_words} <= set(found[0])


def test_kinds_of_words():
    assert tokenize(["Naïve CAFÉS, 東京 foo_bar42 \uff26\uff55\uff4c\uff4c"]) == [
        [f"body:{word}".encode() for word in ("naïve", "cafés", "東", "京", "foo_bar42", "full")]
    ]


def test_ngrams_stay_within_a_text_and_characters_have_blanks_around():
    assert tokenize(["a b", "c"], ngrams=2) == [[b"body:a", b"body:a b", b"body:b"], [b"body:c"]]
    assert tokenize(["A,b"], ngrams=0, chars=(2, 2)) == [[b"body~ a", b"body~a ", b"body~ b", b"body~b "]]


@pytest.mark.parametrize("n_letters", [1, 2 << 20])
def test_names_of_hashed_words_are_kept_at_least_once(n_letters):
    text = "word " + "x" * n_letters + " word"
    starts, letters = texts_of(pa.array([text, text]))
    options = {"bits": BITS, "ngrams": 1, "min_chars": 0, "max_chars": 0, "keep_names": True}
    _, columns, names, name_starts, name_columns = core.tokenize(starts, letters, b"p:", b"p~", **options)
    kept = {
        names[a:b].tobytes(): column
        for a, b, column in zip(name_starts, name_starts[1:], name_columns.tolist(), strict=False)
    }
    assert set(kept) == {b"p:word", b"p:" + b"x" * n_letters}
    assert set(kept.values()) == set(columns.tolist())


@pytest.mark.parametrize(
    ("starts", "more"),
    [([0, 9], {}), ([2, 1], {}), ([-1, 2], {}), ([0, 3], {"bits": 40}), ([0, 3], {"min_chars": 3, "max_chars": 2})],
)
def test_arguments_beyond_the_arrays_are_refused(starts, more):
    options = {"bits": 0, "ngrams": 1, "min_chars": 0, "max_chars": 0, "keep_names": False, **more}
    with pytest.raises(ValueError, match=r"must|bits is|need"):
        core.tokenize(np.array(starts, np.int64), np.zeros(3, np.uint8), b"", b"", **options)
