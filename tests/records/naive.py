"""Features of records in plain Python, to compare with: the tokenizer, and the encoding of each kind of column."""

import re
import unicodedata
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal

from tests.core.naive_text import column_of_name

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
DIGITS_OF_RANGES = ("1", "1.2", "1.5", "2", "2.5", "3", "4", "5", "6", "8")


# Texts


def is_letter(character):
    category = unicodedata.category(character)
    return category[0] in "LMN" or category == "Pc"


def stands_alone(character):
    """Han and kana are words of one character."""
    name = unicodedata.name(character, "")
    return bool(re.match("CJK |IDEOGRAPHIC |HANGZHOU |.*(HIRAGANA|KATAKANA)", name)) and is_letter(character)


def words(text):
    """The words of a text: runs of letters, marks, numbers and connectors."""
    found, word = [], ""
    for character in unicodedata.normalize("NFKC", text).lower() + " ":
        if is_letter(character) and not stands_alone(character):
            word += character
            continue
        found += [word] if word else []
        found += [character] if stands_alone(character) else []
        word = ""
    return found


def text_features(text, ngrams=1, chars=None):
    """Pairs of "word" or "chars" and what occurs, with repetitions, in the order of the core."""
    found = words(text)
    features = [
        ("word", " ".join(found[k : k + n]))
        for k in range(len(found))
        for n in range(1, ngrams + 1)
        if k + n <= len(found)
    ]
    if chars and found:
        whole = f" {' '.join(found)} "
        features += [
            ("chars", whole[k : k + n])
            for k in range(len(whole))
            for n in range(chars[0], chars[1] + 1)
            if k + n <= len(whole) and whole[k : k + n] != " "
        ]
    return features


# Columns


def range_of(number):
    """Ten ranges a decade, whose ends are the same for all data."""
    if number == 0:
        return "0"
    exact = Decimal(abs(number))
    power = exact.adjusted()
    starts = [Decimal(f"{digits}e{p}") for p in (power - 1, power, power + 1) for digits in DIGITS_OF_RANGES]
    # Ends are float64, as the numbers are.
    ends = sorted(float(one) for one in starts)
    low = max(one for one in ends if one <= abs(number))
    high = min(one for one in ends if one > abs(number))
    return f"{low:g}..{high:g}" if number > 0 else f"-{high:g}..-{low:g}"


def date_features(name, when):
    yield f"{name}.year=", str(when.year)
    yield f"{name}.month=", str(when.month)
    yield f"{name}.day=", str(when.day)
    yield f"{name}.weekday=", WEEKDAYS[when.weekday()]
    if isinstance(when, datetime):
        when = when.astimezone(UTC) if when.tzinfo else when
        if (when.hour, when.minute, when.second, when.microsecond) != (0, 0, 0, 0):
            yield f"{name}.hour=", str(when.hour)


def column_features(name, kind, value, ngrams=1, chars=None):
    """The features of one value: pairs of prefix and rest, and the value of each."""
    if value is None or value == "" or value != value:
        return [(("", f"{name} (missing)"), 1.0)]
    if kind == "number":
        return [(("", name), float(value)), ((f"{name}=", range_of(value)), 1.0)]
    if kind == "boolean":
        return [((f"{name}=", str(value).lower()), 1.0)]
    if kind == "category":
        return [((f"{name}=", str(value)), 1.0)]
    if kind == "date":
        if isinstance(value, datetime) and value.tzinfo:
            value = value.astimezone(UTC)
        return [(feature, 1.0) for feature in date_features(name, value)]
    if kind == "set":
        return [((f"{name}=", one), 1.0) for one in dict.fromkeys(value) if one is not None]
    prefixes = {"word": f"{name}:", "chars": f"{name}~"}
    return [((prefixes[part], text), 1.0) for part, text in text_features(value, ngrams, chars)]


def row_features(row, kinds, **options):
    """Name to value, for a whole row; values of the same name add up, and zeros are left out."""
    sums = Counter()
    for name, kind in kinds.items():
        for (prefix, rest), value in column_features(name, kind, row.get(name), **options):
            sums[prefix + rest] += value
    return {name: value for name, value in sums.items() if value != 0}


def hashed_features(row, kinds, bits, **options):
    """Column to value, for a whole row."""
    sums = Counter()
    for name, kind in kinds.items():
        for (prefix, rest), value in column_features(name, kind, row.get(name), **options):
            sums[column_of_name(prefix.encode(), rest.encode(), bits)] += value
    return {column: value for column, value in sums.items() if value != 0}
