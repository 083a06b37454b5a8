"""Whether texts are in another language than English, by their letters and by their most frequent words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from trecexam.graders.weights import OFFLINE_MODEL

#: From this share of letters outside of Latin script on, or of texts in another language, it is said.
SHARE = 0.3
#: Of a text in a language so many different ones of its words are there, and they are this share of all:
#: names and code may have a few of them. Languages with long words have fewer of these.
_DIFFERENT, _LEAST = 4, 0.08
#: Texts of fewer words than this are in no language that could be known.
_WORDS = 8
_WORD = re.compile(r"[^\W\d_]+")
#: The most frequent words of a language, without those of one letter, and for others than English hardly any
#: that English has, too. A few languages that share them with their neighbours stand together.
_FREQUENT = {
    "English": (
        "the of and to in is that for it was on are as with be by at from this have or an not you which "
        "can if has but we they were their what when how your its will there more one do who all"
    ),
    "German": (
        "der und die das ist nicht ein eine den dem von mit sich auf für werden wird auch als sind wie "
        "einen einer oder bei durch nach aus zu im zum zur"
    ),
    "French": (
        "le la les de des du et un une est que qui dans pour pas sur par avec sont au aux plus ce cette "
        "ou il elle mais nous vous être se ne en"
    ),
    "Spanish": (
        "el la los las de del que en un una es por con para se su al lo como más pero sus este esta son "
        "entre también fue no hay muy ya"
    ),
    "Portuguese": (
        "os da das dos de que em um uma não por com para se na nas ao mais foi são como mas seu sua "
        "pelo pela também ou ser"
    ),
    "Italian": (
        "il la le di che un una per con non del della dei delle si sono nel nella gli da alla anche "
        "come più è questo essere lo al"
    ),
    "Dutch": (
        "de het een van en dat niet zijn voor met te op ook aan als er maar bij naar wordt worden deze "
        "dit uit om ze hij heeft"
    ),
    "Swedish": (
        "och att det som en på är av den till inte har ett om han från kan vid med sig eller efter när "
        "så också detta"
    ),
    "Danish or Norwegian": (
        "og det som en på er av af til ikke har et om jeg fra han med sig seg eller efter etter ved "
        "også kan blev ble"
    ),
    "Finnish": (
        "ja ei se että oli hän ovat kun joka myös tai niin kuin mukaan ole sen jos vain sekä jotka tämä "
        "voi mutta"
    ),
    "Polish": (
        "nie na się że jest jak od po ale za przez przy który która są oraz był dla tego lub także może "
        "jego które"
    ),
    "Czech or Slovak": (
        "se na je že ve pro jako jsou který byl nebo není podle od po při také jeho která které aby sú "
        "nie ako ktoré alebo však"
    ),
    "Hungarian": (
        "az és hogy nem egy de ez csak volt már vagy mint még azt szerint ki el kell lehet ezt után "
        "között amely nagyon"
    ),
    "Romanian": (
        "și de la în cu pe nu că este care din mai pentru un sau prin între sunt fost lui ale al unei"
    ),
    "Croatian or Serbian": (
        "je se na da za od su kao ne što koji koja bi ili nije sam ali po iz bio sve može ove"
    ),
    "Turkish": (
        "ve bir bu için ile da de olarak çok daha gibi kadar sonra olan ne ama her en veya ya olduğu "
        "değil göre tarafından"  # noqa: RUF001
    ),
    "Indonesian or Malay": (
        "yang dan di dengan untuk dari ini pada tidak itu dalam akan adalah oleh atau juga ke dapat "
        "karena sebagai"
    ),
    "Vietnamese": (
        "của và là các có không được trong một cho những người với này để khi từ đã năm ở như cũng đến ra tôi"
    ),
}
_LANGUAGES: dict[str, tuple[str, ...]] = {}
for _language, _words in _FREQUENT.items():
    for _word in _words.split():
        _LANGUAGES[_word] = (*_LANGUAGES.get(_word, ()), _language)


def foreign_language(text: str) -> str | None:
    """The language of a text in Latin letters that is not English; None where it is, or nothing shows it.

    A language shows by its most frequent words (of 17 languages beside English): at least four different
    ones, 8% of the words, and more of them than of English ones. So names, code and lists of terms show none.
    """
    words = _WORD.findall(unicodedata.normalize("NFC", text).lower())
    if len(words) < _WORDS:
        return None
    counts: Counter[str] = Counter()
    different: Counter[str] = Counter()
    for word, n in Counter(words).items():
        for language in _LANGUAGES.get(word, ()):
            counts[language] += n
            different[language] += 1
    english = counts.pop("English", 0)
    likely = [language for language in counts if different[language] >= _DIFFERENT]
    best = max(likely, key=counts.__getitem__, default="")
    return best if counts[best] > max(english, _LEAST * len(words)) else None


def odd_languages(passages: Sequence[str], queries: Iterable[str], model: str) -> list[str]:
    """What speaks against an encoder that reads English, a line each.

    Args:
        passages: a sample of them.
        queries: the track's; together they are looked at as one text.
        model: the encoder's name.
    """
    if model == OFFLINE_MODEL:
        advice = (
            f"and {OFFLINE_MODEL.rpartition('/')[2]} reads English: name a model of your language with "
            "--encoder, and see --cross-validate"
        )
    else:
        advice = f"and {model} may not read that: see --cross-validate"
    lines = []
    letters = [letter for text in passages for letter in text if letter.isalpha()]
    foreign = sum(not _is_latin(letter) for letter in letters)
    if foreign > SHARE * len(letters):
        lines.append(f"{foreign / len(letters):.0%} of the passages' letters are not Latin, {advice}")
    languages = Counter(filter(None, map(foreign_language, passages)))
    if languages.total() > SHARE * len(passages):
        names = ", ".join(name for name, _ in languages.most_common(3))
        lines.append(f"{languages.total() / len(passages):.0%} of the passages seem to be {names}, {advice}")
    of_queries = foreign_language("\n".join(queries))
    if of_queries is not None:
        lines.append(f"the queries seem to be {of_queries}, {advice}")
    return lines


def _is_latin(letter: str) -> bool:
    # Latin Extended Additional has the letters of Vietnamese.
    return ord(letter) <= 0x24F or 0x1E00 <= ord(letter) <= 0x1EFF
