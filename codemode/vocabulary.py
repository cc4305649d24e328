"""The words of queries and of tools: how text is split, what stands for what.

Words are compared by their stems. Besides, people shorten: by initials (`pr`), by leaving vowels out
(`msg`), by the number of letters between (`k8s`), by prefixes run together (`gcal`); and they write two
words as one (`keyvault`). These are recognised by their form. Only for what has no form, that one word is
used for the same act or thing as another, there is a table, of general English and of commands.

Knows: English words. Does not know: tools, scores.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WORD: Final = re.compile(
    r"[A-Za-z]\d+[a-z]\b|[A-Z]{2,}s\b|[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+|[^\W\d_A-Za-z]+"
)
_SUFFIXES: Final = ("ions", "ion", "ings", "ing", "ies", "ers", "er", "ed", "es", "s", "e")
_SHORTEST_STEM: Final = 3
_SHORTEST_PART: Final = 5
_MOST_INITIALS: Final = 3
_LONGEST_SHORTENED: Final = 5
"""Letters of the longest word that is taken for another one without its vowels. Arbitrary."""

_RELATING: Final = "in on for from to with of below by at into using via about under over inside within"
_EMPTY: Final = """
a an the my our your this that these those is are was be do does did it its me we us you there please how
much many right now some any someone something and or can could want need would should
"""
PREPOSITIONS: Final = frozenset(_RELATING.split())
EMPTY_WORDS: Final = frozenset(_EMPTY.split())
_SAME: Final = """
create add new make open post send write publish schedule start insert upload put invite save submit
create compose share register generate append attach raise log file book reserve order buy provision
create launch begin set copy clone duplicate import subscribe reply respond answer link connect deploy
create grant allow fill
list all show which what who overview browse ls every enumerate index
get fetch retrieve read show detail look view download inspect info describe display load check cat
get status open check count validate verify preview export
update change edit modify turn move rename assign close resolve acknowledge mute scale adjust mark tick
update enable disable rotate alter replace switch complete finish archive fix correct toggle patch set
update reschedule mv lock pause resume suspend stop approve accept decline refresh restore revert renew
update extend sync transfer merge restart reboot
delete remove erase drop cancel terminate destroy unsubscribe deactivate clear revoke reject reset
delete rm del trash discard purge wipe kill uninstall prune detach disconnect unlink block
search find look query lookup filter match select grep seek locate
run execute invoke start trigger launch call
ticket issue bug case
email mail inbox
sms text
message dm chat
picture image photo
folder directory dir
song track music
repo repository
document file doc
meeting event appointment
user member people person who
attendee guest invitee participant
company organization organisation business
lamp light bulb
heating heater thermostat
car vehicle
trip journey ride
salary wage payslip payroll
phone telephone mobile
customer client buyer
invoice bill
row record entry item
weather forecast temperature
job task todo
vacation holiday leave
database db
server machine host vm guild
price cost fare rate
webpage page site website
remark comment note reply
label tag
movie film video
employee staff worker
plan schedule
report statistic stats summary
error exception issue
alert alarm monitor
environment env
configuration config setting
password secret credential
"""
"""Words that people use for the same act or thing, one group a line. A word may be in several."""


def words_of(text: str) -> list[str]:
    """Return the stems of a text's words, in order."""
    return [stem(word.lower()) for word in _WORD.findall(text)]


def told_words(query: str) -> list[str]:
    """Return the words of a query in small letters, those of one Latin letter left out."""
    return [word.lower() for word in _WORD.findall(query) if len(word) > 1 or not word.isascii()]


def plain_words(name: str) -> list[str]:
    """Return the words of a name as they stand, in small letters."""
    return [word.lower() for word in _WORD.findall(name)]


@functools.lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """Return what a word has in common with its other forms."""
    for ending in ("ifications", "ification"):
        if word.endswith(ending):
            return word.removesuffix(ending) + "ify"
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            cut = word[: -len(suffix)]
            if suffix in ("ing", "ings", "ed") and _is_doubled(cut):
                cut = cut[:-1]
            if suffix == "ies" or cut.endswith("i"):
                return cut.removesuffix("i") + "y"
            return cut
    return word


def _is_doubled(cut: str) -> bool:
    """Whether a consonant was doubled before an ending: running, setting; not adding, calling."""
    return len(cut) > _SHORTEST_STEM and cut[-1] == cut[-2] and cut[-1] not in "aeioulsz"


@functools.cache
def synonyms() -> dict[str, list[str]]:
    """Return, by stem, the stems that are used for the same."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for line in _SAME.strip().splitlines():
        group = [stem(word) for word in line.split()]
        for word in group:
            found[word].update((other, None) for other in group if other != word)
    return {word: list(others) for word, others in found.items()}


def is_part(word: str, known: str) -> bool:
    """Whether one of two words begins or ends with the other: log and worklog, unsubscribe and subscriber."""
    short, long = sorted((word, known), key=len)
    if short == known and len(short) < _SHORTEST_PART:
        return False
    return long.startswith(short) or long.endswith(short)


def is_short_for(word: str, known: str) -> bool:
    """Whether a word is another one without its vowels, or with the number of letters left out."""
    if re.fullmatch(r"[a-z]\d+[a-z]", word):
        return word == f"{known[0]}{len(known) - 2}{known[-1]}"
    if len(known) < len(word) + 2 or known[0] != word[0]:
        return False
    if len(word) > _LONGEST_SHORTENED or not re.fullmatch(r"[a-z][^\W\d_aeiou]+", word):
        return False
    letters = iter(known)
    return all(letter in letters for letter in word)


def is_run_together(word: str, first: str, second: str) -> bool:
    """Whether a word is made of the beginnings of two others: gcal and google calendar."""
    if first[0] != word[0] or len(word) > len(first) + len(second):
        return False
    cuts = range(1, min(len(first), len(word) - 2) + 1)
    return any(first.startswith(word[:cut]) and second.startswith(word[cut:]) for cut in cuts)


def compounds(words: Sequence[str]) -> Iterator[str]:
    """Yield what neighbouring words of a name may be shortened to: joined, and by initials."""
    for start in range(len(words) - 1):
        yield stem(words[start] + words[start + 1])
        for end in range(start + 2, min(start + _MOST_INITIALS, len(words)) + 1):
            yield "".join(word[0] for word in words[start:end])
