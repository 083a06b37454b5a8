"""What the frozen tracks are made of, and a server that answers by what it is asked.

Never edited: it is the input.
"""

from __future__ import annotations

import ast
import hashlib
import re
from random import Random
from typing import Any

from scripted_server import Exchange

QUERIES = {
    "q1": "how do heat pumps work in winter",
    "q2": "why is the sea salty",
    "q3": "what do bees need in spring",
    "q4": "who built the first bridges of iron",
    "q5": "which soil do olive trees like",
}
_WORDS = (
    "pump", "heat", "winter", "coil", "frost", "sea", "salt", "river", "rock", "bees", "spring",
    "flower", "hive", "bridge", "iron", "span", "soil", "olive", "tree", "stone", "water", "cold",
    "air", "town", "north", "year", "people", "often", "because", "little", "large", "slowly",
    "never",
)  # fmt: skip


def hashed(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256("\0".join(map(str, parts)).encode()).digest()[:4])


def text(query_id: str, number: int) -> str:
    rng = Random(f"{query_id}/{number}")
    own = QUERIES[query_id].split()
    return (
        " ".join(rng.sample(own, rng.randint(1, len(own) - 1)) + rng.choices(_WORDS, k=9)).capitalize() + "."
    )


def passages(n: int = 14) -> list[dict[str, str]]:
    return [{"docid": f"{q}-d{at:02}", "text": text(q, at)} for q in QUERIES for at in range(n)]


def runs(n: int = 14, names: str = "abcd", length: int = 10) -> dict[str, str]:
    """run -> its file. The later its letter, the worse; run b knows no q5, run c has ties."""
    found = {}
    for place, name in enumerate(names):
        lines = []
        for q in QUERIES:
            if name == "b" and q == "q5":
                continue
            rng = Random(f"{name}{q}")
            order = sorted(range(n), key=lambda at: -relevance(q, at) + rng.random() * (1 + place) * 2)
            for rank, at in enumerate(order[:length], 1):
                score = 50 - (rank // 2 if name == "c" else rank)
                lines.append(f"{q} Q0 {q}-d{at:02} {rank} {score} {name}\n")
        found[name] = "".join(lines)
    return found


def relevance(query_id: str, number: int) -> int:
    return hashed("rel", query_id, number) % 4


def qrels(n: int = 14, *, holes: int = 3) -> str:
    """Judgments 0..3; every third document (by default) nobody judged."""
    return "".join(
        f"{q} 0 {q}-d{at:02} {relevance(q, at)}\n"
        for q in QUERIES
        for at in range(n)
        if not holes or at % holes
    )


def questions(n: int = 3) -> list[dict[str, Any]]:
    return [
        {
            "query_id": q,
            "query_text": said,
            "questions": [
                {"question_id": f"{q}/{i}", "question_text": f"What of {said.split()[-1 - i]} in {q}?"}
                for i in range(n)
            ],
        }
        for q, said in QUERIES.items()
    ]


def nuggets(n: int = 4) -> list[dict[str, Any]]:
    return [
        {
            "query_id": q,
            "query_text": said,
            "nuggets": [
                {
                    "nugget_id": f"{q}/n{i}",
                    "nugget_text": f"{said.split()[-1]} fact {i}",
                    "importance": "vital" if i % 2 else "okay",
                }
                for i in range(n)
            ],
        }
        for q, said in QUERIES.items()
    ]


def responses(run: str) -> list[dict[str, Any]]:
    """A response to each query; sentences cite well, twice, nothing, out of range, and what has no text."""
    found = []
    for q in QUERIES:
        rng = Random(f"{run}{q}")
        if run == "brief" and q in {"q2", "q4"}:
            continue
        references = [f"{q}-d{at:02}" for at in rng.sample(range(14), 4)] + (["gone"] if q == "q1" else [])
        answer = []
        for at in range(rng.randint(2, 4)):
            cited: list[int] = rng.choice([[0], [1, 2], [], [3, 0], [9], [len(references) - 1]])
            source = references[cited[0]] if cited and cited[0] < len(references) else ""
            said = (
                text(q, int(source[-2:]))
                if source.startswith("q") and rng.random() < 0.5
                else text(q, 50 + at)
            )
            # The same sentence in two systems: what they share is asked once.
            answer.append({"text": "Shared by all." if at == 1 and q == "q3" else said, "citations": cited})
        found.append({"run_id": run, "topic_id": q, "references": references, "answer": answer})
    if run == "silent":
        found[0]["answer"] = []
        for row in found[1:]:
            for sentence in row["answer"]:
                sentence["citations"] = []
    return found


def answering(exchange: Exchange) -> None:
    """A reply that hangs on the request alone; about one of twenty cannot be read."""
    prompt, body = exchange.prompt, exchange.body
    chance = Random(hashed(prompt, body.get("model"), body.get("seed")))
    if "Updated Nugget List:" in prompt:
        facts = [
            f"fact of {word}"
            for word in sorted(set(re.findall(r"\b[a-z]{5,}\b", prompt.rpartition("Context:")[2])))[:4]
        ]
        exchange.say(str(facts))
    elif "Nugget List: " in prompt:
        line = next(line for line in prompt.splitlines() if line.startswith("Nugget List: "))
        asked = ast.literal_eval(line.removeprefix("Nugget List: "))
        words = (
            ("vital", "okay")
            if "vital" in prompt and "not_support" not in prompt
            else ("support", "partial_support", "not_support")
        )
        exchange.say(str([chance.choice(words) for _ in asked]))
    elif "Statement: " in prompt and "Citation: " in prompt:
        label = chance.choice(["full_support", "partial_support", "no_support"])
        exchange.say("Hard to tell." if chance.random() < 0.05 else label)
    elif "Candidates:" in prompt:
        able = {"small": 0.2, "middle": 0.5, "large": 0.8}[body["model"]]
        right = next(line[0] for line in reversed(prompt.splitlines()) if ") right" in line)
        exchange.say(right if chance.random() < able else chance.choice("ABCD"))
    elif "Chatbot generated answer" in prompt:
        relevance, truth = chance.choice([1, 2, 3, 4, 4.5, 5]), chance.choice([1, 2, 3, 4, 5])
        exchange.say(
            "No." if chance.random() < 0.05 else f'{{"relevance": {relevance}, "truthfulness": {truth}}}'
        )
    elif "Generate a creative question" in prompt:
        exchange.say(f'Question: "Why {prompt.rpartition("text: ")[2].split()[0]}?"')
    elif "Knowledge block: " in prompt:
        exchange.say("It is in the block.")
    elif "says: " in prompt:
        exchange.say(prompt.rpartition("says: ")[2].splitlines()[0].strip())
    elif "##final score" in prompt:
        exchange.say(f"##final score: {chance.randrange(4)}" if chance.random() > 0.05 else "None of these.")
    else:
        exchange.say(str(chance.randrange(6)) if chance.random() > 0.05 else "I would rather not.")


def toml(section: str, **words: Any) -> str:
    """A section of trecexam.toml."""
    lines = (
        f"{key} = {str(word).lower() if isinstance(word, bool) else repr(word)}\n"
        for key, word in words.items()
    )
    return f"[{section}]\n{''.join(lines)}"
