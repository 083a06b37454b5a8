"""Detection of texts that an English encoder cannot read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import trecexam
from trecexam.extensions.learn.language import odd_languages, reads_as_english

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
FOREIGN = {
    "German": (
        "Die Photosynthese ist ein Vorgang, bei dem Pflanzen Lichtenergie in chemische Energie umwandeln."
    ),
    "French": (
        "C'est le processus par lequel les plantes transforment la lumière en énergie et la stockent."
    ),
    "Spanish": (
        "Es el proceso por el cual las plantas convierten la luz en energía química y liberan oxígeno."
    ),
    "Portuguese": (
        "É o processo pelo qual as plantas transformam a luz em energia, e o oxigênio não é consumido "
        "mas liberado para a atmosfera."
    ),
    "Italian": "È il processo con cui le piante trasformano la luce in energia chimica per gli animali.",
    "Dutch": "Het is een proces waarbij planten licht omzetten in energie, en zuurstof van de bladeren.",
    "Swedish": (
        "Det är den process där växter omvandlar ljus till energi och släpper ut syre som inte behövs."
    ),
    "Danish or Norwegian": (
        "Det er en proces, hvor planter omdanner lys til energi, og ilt som ikke bruges."
    ),
    "Finnish": (
        "Kasvit muuttavat valon energiaksi ja vapauttavat happea, joka on tärkeää, mutta se ei ole ainoa."
    ),
    "Polish": (
        "Fotosynteza jest procesem, w którym rośliny zamieniają światło na energię, a tlen nie jest "
        "zużywany, lecz uwalniany przez liście oraz się ulatnia."
    ),
    "Czech or Slovak": (
        "Fotosyntéza je proces, při kterém se světlo mění na energii a kyslík, který není potřeba, se "
        "uvolňuje."
    ),
    "Hungarian": (
        "A fotoszintézis az a folyamat, amely a fényt energiává alakítja, és az oxigén nem marad, hogy "
        "azt kibocsássa."
    ),
    "Romanian": (
        "Este procesul prin care plantele transformă lumina în energie și eliberează oxigen din frunze "
        "pentru a nu se pierde."
    ),
    "Croatian or Serbian": (
        "Fotosinteza je proces u kojem biljke svjetlost pretvaraju u energiju, a kisik koji nije "
        "potreban se ispušta kao otpad."
    ),
    "Turkish": (
        "Bitkilerin ışık enerjisini kimyasal enerjiye dönüştürdüğü bir süreçtir ve bu süreç yaşam için "  # noqa: RUF001
        "çok önemlidir."
    ),
    "Indonesian or Malay": (
        "Fotosintesis adalah proses yang dilakukan oleh tumbuhan untuk mengubah cahaya dan air menjadi "
        "energi yang dapat digunakan."
    ),
    "Vietnamese": (
        "Quang hợp là quá trình mà thực vật chuyển đổi ánh sáng thành năng lượng và thải ra khí oxy cho "
        "các loài khác."
    ),
}
ENGLISH = (
    "In German, 'der, die, das' are the articles: 'der' is masculine, 'die' is feminine and 'das' is neuter.",
    "Vincent van Gogh was at the Musée de l'Orangerie, said Charles de Gaulle of the Académie.",
    "le mot juste",
    "",
)


@pytest.mark.parametrize("language", FOREIGN)
def test_a_text_in_another_language_is_not_recognised_as_english(language: str) -> None:
    assert not reads_as_english(FOREIGN[language])
    assert not reads_as_english(FOREIGN[language].upper())


@pytest.mark.parametrize("text", ENGLISH)
def test_english_with_foreign_names_and_short_texts_are_not_called_foreign(text: str) -> None:
    assert reads_as_english(text)


def test_the_passages_of_the_demo_track_are_recognised_as_english() -> None:
    root = Path(trecexam.__file__).parent
    lines = (root / "demo_track" / "passages.jsonl").read_text(encoding="utf-8").splitlines()
    assert not odd_languages([json.loads(line)["text"] for line in lines], MINILM)


def test_passages_in_other_languages_give_one_warning_with_a_remedy() -> None:
    english = ["What the weather is like in the mountains, and when it is good to go there."] * 7
    mixed = [*english, FOREIGN["German"], FOREIGN["German"], FOREIGN["French"], FOREIGN["French"]]
    (line,) = odd_languages(mixed, MINILM)
    assert line.startswith("36% of the passages do not read as English, and all-MiniLM-L6-v2 reads English")
    assert "`encoder` in [learn]" in line
    (line,) = odd_languages(mixed, "BAAI/bge-m3")
    assert line.endswith("BAAI/bge-m3 may not read that: see `trecexam cross-validate`")
    assert not odd_languages(mixed[:9], MINILM)


def test_vietnamese_letters_are_latin_and_cyrillic_letters_are_not() -> None:
    (line,) = odd_languages([FOREIGN["Vietnamese"]] * 3, MINILM)
    assert "do not read as English" in line
    (line,) = odd_languages(["русские слова " * 5], MINILM)
    assert line.startswith("100% of the passages' letters are not Latin, and all-MiniLM-L6-v2 reads English")
