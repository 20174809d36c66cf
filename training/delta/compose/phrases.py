"""Noun phrases in four languages: a table's rows with the conditions on them, superlatives, and the words of columns.

Each class gives the placeholders of its language's frames. Forms that cannot be looked up in a small table of articles
are stored in the domain.
"""

from __future__ import annotations

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from .domains import Category, Domain, Measure, Name
from .selections import Compares, Condition, Either, Has, Is, Within

_Kind = TypeVar("_Kind", Has, Is, Either, Compares, Within)
_VOWELS = re.compile(r"[aeiouyhàâäéèêëîïôöûüœ]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Topic:
    """What a sentence speaks of: rows of a domain, and which of its columns are asked for."""

    domain: Domain
    conditions: tuple[Condition, ...] = ()
    measure: Measure | None = None
    category: Category | None = None
    source: str = ""
    """Where the table is, if the request says so: "in <csv>", "in the mileage log"."""


class Phrases(ABC):
    """The phrases of one language. The same choices for one sentence, other ones for the next."""

    either = "or"

    def __init__(self, topic: Topic, picks: random.Random, *, neutral: bool = False) -> None:
        """`neutral` phrases have "the" for "my" and "our": they are texts that others read."""
        self.topic = topic
        self.domain = topic.domain
        self.picks = picks
        self.neutral = neutral or bool(topic.source)
        flags, days = self._conditions(Has), self._conditions(Within)
        # "Bills that are not paid yet" for "unpaid bills", but not two clauses behind one noun.
        self.clausal = len(flags) == 1 and not days and picks.random() < 0.35

    def words(self) -> dict[str, str]:
        """The placeholders of a frame, with what stands for them."""
        found = dict(self.noun_phrases())
        topic = self.topic
        if topic.measure is not None:
            found |= self.measure_words(topic.measure)
        if topic.category is not None:
            found |= self.category_words(topic.category)
        found |= self.name_words(self.domain.name)
        found |= {"one": self.domain.one, "many": self.domain.many, "contact": self.domain.contact}
        if self.domain.day is not None:
            found["day"] = self.domain.day.column
        flags = [each for each in topic.conditions if isinstance(each, Has)]
        if flags:
            found["are"] = flags[0].flag.are if flags[0].wanted else flags[0].flag.are_not
        return found

    @abstractmethod
    def noun_phrases(self) -> Mapping[str, str]: ...

    @abstractmethod
    def measure_words(self, measure: Measure) -> Mapping[str, str]: ...

    @abstractmethod
    def category_words(self, category: Category) -> Mapping[str, str]: ...

    @abstractmethod
    def name_words(self, name: Name) -> Mapping[str, str]: ...

    @abstractmethod
    def compared(self, condition: Compares) -> str:
        """The phrase for a condition on a number, as it stands behind a noun."""

    @abstractmethod
    def clause(self, predicate: str) -> str:
        """The relative clause for "are not paid yet"."""

    def adjectives(self) -> list[str]:
        return (
            [] if self.clausal else [each.flag.yes if each.wanted else each.flag.no for each in self._conditions(Has)]
        )

    def behind(self, *, source_first: bool = False) -> str:
        """What stands behind the noun: categories, numbers, days, and where the table is."""
        parts = [each.category.phrase.replace("{v}", each.value) for each in self._conditions(Is)]
        for each in self._conditions(Either):
            parts.append(each.category.phrase.replace("{v}", f"{each.first} {self.either} {each.second}"))
        parts += [self.compared(each) for each in self._conditions(Compares)]
        parts += self.periods()
        parts.insert(0 if source_first else len(parts), self.topic.source)
        if self.clausal:
            flag = self._conditions(Has)[0]
            parts.append(self.clause(flag.flag.are if flag.wanted else flag.flag.are_not))
        return "".join(f" {part}" for part in parts if part)

    def periods(self) -> list[str]:
        return [each.day.phrase.replace("{p}", each.period.text) for each in self._conditions(Within)]

    def _conditions(self, kind: type[_Kind]) -> Sequence[_Kind]:
        return [each for each in self.topic.conditions if isinstance(each, kind)]

    def _possessive(self, mine: str, ours: str, the: str) -> str:
        if self.neutral:
            return the
        return self.picks.choices((mine, ours, the), (5, 2, 3))[0]


class EnglishPhrases(Phrases):
    """English: no gender, adjectives before the noun."""

    def clause(self, predicate: str) -> str:
        return f"that {predicate}"

    def noun_phrases(self) -> Mapping[str, str]:
        article = self._possessive("my", "our", "the")
        adjectives = "".join(f"{each} " for each in self.adjectives())
        bare = f"{adjectives}{self.domain.many}{self.behind()}"
        plain = f"{self.domain.many}{' ' + self.topic.source if self.topic.source else ''}"
        return {"np": f"{article} {bare}", "bare": bare, "all": f"{article} {plain}", "the_np": f"the {bare}"}

    def compared(self, condition: Compares) -> str:
        measure, slot = condition.measure, condition.measure.slot
        if measure.is_unit:
            words = {">": ("more than",), "<": ("less than", "under"), ">=": ("at least",)}[condition.op]
            return f"with {self.picks.choice(words)} {slot} {measure.column}"
        words = {">": ("over", "above"), "<": ("under", "below"), ">=": ("of at least",)}[condition.op]
        said = f"{self.picks.choice(words)} {slot}"
        article = "an" if _VOWELS.match(measure.column) and measure.column[0] != "h" else "a"
        return said if measure.kind == "money" and self._is_main(measure) else f"with {article} {measure.column} {said}"

    def _is_main(self, measure: Measure) -> bool:
        return measure == self.domain.measures[0] and self.picks.random() < 0.7

    def measure_words(self, measure: Measure) -> Mapping[str, str]:
        word = measure.column
        unit = measure.is_unit
        return {
            "measure": word,
            "total": f"the total number of {word}" if unit else f"the total {word}",
            "average": f"the average number of {word}" if unit else f"the average {word}",
            "highest": f"the most {word}" if unit else f"the highest {word}",
            "lowest": f"the fewest {word}" if unit else f"the lowest {word}",
            "how_much": f"How many {word}" if unit else f"What {word}",
            "how_much_low": f"how many {word}" if unit else f"what {word}",
            "how_much_more": f"How many more {word}" if unit else f"How much more in {word}",
            "is": "are" if unit else "is",
            "adds": "add" if unit else "adds",
            "does": "do" if unit else "does",
        }

    def category_words(self, category: Category) -> Mapping[str, str]:
        return {"cat": category.column, "which_cat": f"which {category.column}"}

    def name_words(self, name: Name) -> Mapping[str, str]:
        return {"name": name.column, "the_name": f"the {name.column}", "names": f"the {name.plural}"}


_GERMAN_THE = {"m": ("der", "den", "dem"), "f": ("die", "die", "der"), "n": ("das", "das", "dem")}
_GERMAN_ANY = {"m": "er", "f": "e", "n": "es"}
_GERMAN_EACH = {"m": "n", "f": "", "n": "s"}


class GermanPhrases(Phrases):
    """German: articles by gender and case, adjective endings by the article, relative clauses between commas."""

    either = "oder"

    def clause(self, predicate: str) -> str:
        return f"\b, die {predicate} sind,"

    def noun_phrases(self) -> Mapping[str, str]:
        number = 2 if self.neutral else self.picks.choices((0, 1, 2), (5, 2, 3))[0]
        weak, strong = self._adjectives("en"), self._adjectives("e")
        domain, behind = self.domain, self.behind(source_first=True)
        many, dative = f"{domain.many}{behind}", f"{domain.dative}{behind}"
        source = f" {self.topic.source}" if self.topic.source else ""
        the, dem, der = (
            forms[number]
            for forms in (("meine", "unsere", "die"), ("meinen", "unseren", "den"), ("meiner", "unserer", "der"))
        )
        gender = domain.gender
        return {
            "np": f"{the} {weak}{many}",
            "np_dat": f"{dem} {weak}{dative}",
            "np_gen": f"{der} {weak}{many}",
            "the_np": f"die {weak}{many}",
            "the_np_dat": f"den {weak}{dative}",
            "bare": f"{strong}{many}",
            "bare_weak": f"{weak}{many}",
            "all": f"{the} {domain.many}{source}",
            "all_dat": f"{dem} {domain.dative}{source}",
            "all_gen": f"{der} {domain.many}{source}",
            "welche": f"welch{_GERMAN_ANY[gender]}",
            "Welche": f"Welch{_GERMAN_ANY[gender]}",
            "der": _GERMAN_THE[gender][0],
            "den": _GERMAN_THE[gender][1],
            "jede": f"jede{_GERMAN_EACH[gender]}",
            "neueste": f"{_GERMAN_THE[gender][0]} neueste {domain.one}",
            "den_neuesten": f"{_GERMAN_THE[gender][1]} neueste{'n' if gender == 'm' else ''} {domain.one}",
            "aelteste": f"{_GERMAN_THE[gender][0]} älteste {domain.one}",
            "den_aeltesten": f"{_GERMAN_THE[gender][1]} älteste{'n' if gender == 'm' else ''} {domain.one}",
        }

    def _adjectives(self, ending: str) -> str:
        return "".join(f"{each}{ending} " for each in self.adjectives())

    def periods(self) -> list[str]:
        # The comma that closes the clause goes when the sentence ends there.
        return [f"\b, {text}," for text in super().periods()]

    def compared(self, condition: Compares) -> str:
        measure, slot = condition.measure, condition.measure.slot
        words = {">": "mehr als", "<": "weniger als", ">=": "mindestens"}[condition.op]
        if measure.is_unit:
            return f"mit {words} {slot} {measure.dative or measure.column}"
        if measure.kind == "money" and measure == self.domain.measures[0] and self.picks.random() < 0.7:
            return f"{ {'>': 'über', '<': 'unter', '>=': 'ab'}[condition.op] } {slot} Euro"
        return f"mit {'einer' if measure.gender == 'f' else 'einem'} {measure.column} von {words} {slot}"

    def measure_words(self, measure: Measure) -> Mapping[str, str]:
        word = measure.column
        if measure.is_unit:
            return {
                "measure": word,
                "m_von": measure.dative or word,
                "m_nom": f"die {word}",
                "m_acc": f"die {word}",
                "m_dat": f"den {measure.dative or word}",
                "highest": f"die meisten {word}",
                "lowest": f"die wenigsten {word}",
                "highest_dat": f"den meisten {measure.dative or word}",
                "lowest_dat": f"den wenigsten {measure.dative or word}",
                "how_much": f"Wie viele {word}",
                "kommt": "kommen",
            }
        nominative, accusative, dative = _GERMAN_THE[measure.gender]
        ending = "en" if measure.gender == "m" else "e"
        return {
            "measure": word,
            "m_von": word,
            "m_nom": f"{nominative} {word}",
            "m_acc": f"{accusative} {word}",
            "m_dat": f"{dative} {word}",
            "highest": f"{accusative} höchst{ending} {word}",
            "lowest": f"{accusative} niedrigst{ending} {word}",
            "highest_dat": f"{dative} höchsten {word}",
            "lowest_dat": f"{dative} niedrigsten {word}",
            "how_much": f"Welch{_GERMAN_ANY[measure.gender]} {word}",
            "kommt": "kommt",
        }

    def category_words(self, category: Category) -> Mapping[str, str]:
        nominative, accusative, _ = _GERMAN_THE[category.gender]
        return {
            "cat": category.column,
            "which_cat": f"welch{_GERMAN_ANY[category.gender]} {category.column}",
            "Which_cat": f"Welch{_GERMAN_ANY[category.gender]} {category.column}",
            "the_cat": f"{nominative} {category.column}",
            "the_cat_acc": f"{accusative} {category.column}",
            "each_cat": f"jede{_GERMAN_EACH[category.gender]} {category.column}",
        }

    def name_words(self, name: Name) -> Mapping[str, str]:
        nominative, accusative, _ = _GERMAN_THE[name.gender]
        return {
            "name": name.column,
            "the_name": f"{nominative} {name.column}",
            "the_name_acc": f"{accusative} {name.accusative or name.column}",
            "names": f"die {name.plural}",
        }


class _RomancePhrases(Phrases):
    """French and Spanish: gendered articles, agreeing adjectives behind the noun."""

    def bare(self) -> str:
        adjectives = "".join(f" {each}" for each in self.adjectives())
        return f"{self.domain.many}{adjectives}{self.behind()}"

    @property
    def feminine(self) -> bool:
        return self.domain.gender == "f"


def _french(feminine: bool, noun: str) -> str:
    """The noun with its definite article, in the singular."""
    return f"l'{noun}" if _VOWELS.match(noun) else f"{'la' if feminine else 'le'} {noun}"


def _french_of(phrase: str) -> str:
    """`de` and a phrase with a definite article."""
    if phrase.startswith("le "):
        return f"du {phrase[3:]}"
    return f"des {phrase[4:]}" if phrase.startswith("les ") else f"de {phrase}"


class FrenchPhrases(_RomancePhrases):
    """French: elision and contraction of articles."""

    either = "ou"

    def clause(self, predicate: str) -> str:
        return f"qui {predicate}"

    def noun_phrases(self) -> Mapping[str, str]:
        article = self._possessive("mes", "nos", "les")
        bare, domain = self.bare(), self.domain
        source = f" {self.topic.source}" if self.topic.source else ""
        one = _french(self.feminine, domain.one)
        plus = "la plus" if self.feminine else "le plus"
        return {
            "np": f"{article} {bare}",
            "de_np": _french_of(f"{article} {bare}"),
            "the_np": f"les {bare}",
            "de_the_np": f"des {bare}",
            "bare": bare,
            "d_bare": f"d'{bare}" if _VOWELS.match(bare) else f"de {bare}",
            "all": f"{article} {domain.many}{source}",
            "de_all": _french_of(f"{article} {domain.many}{source}"),
            "quels": "quelles" if self.feminine else "quels",
            "quel": "quelle" if self.feminine else "quel",
            "Quel": "Quelle" if self.feminine else "Quel",
            "lequel": "laquelle" if self.feminine else "lequel",
            "Lequel": "Laquelle" if self.feminine else "Lequel",
            "lesquels": "lesquelles" if self.feminine else "lesquels",
            "Lesquels": "Lesquelles" if self.feminine else "Lesquels",
            "chaque": f"chaque {domain.one}",
            "le_one": one,
            "newest": f"{one} {plus} récent{'e' if self.feminine else ''}",
            "oldest": f"{one} {plus} ancien{'ne' if self.feminine else ''}",
            "le_plus_recent": f"{plus} récent{'e' if self.feminine else ''}",
            "le_plus_ancien": f"{plus} ancien{'ne' if self.feminine else ''}",
            "tous": "toutes" if self.feminine else "tous",
        }

    def compared(self, condition: Compares) -> str:
        measure, slot = condition.measure, condition.measure.slot
        words = {">": "plus de", "<": "moins de", ">=": "au moins"}[condition.op]
        if measure.is_unit:
            return f"avec {words} {slot} {measure.column}"
        of = "d'au moins" if condition.op == ">=" else f"de {words}"
        if measure.kind == "money" and measure == self.domain.measures[0] and self.picks.random() < 0.7:
            return f"{of} {slot} euros"
        return f"avec {'une' if measure.gender == 'f' else 'un'} {measure.column} {of} {slot}"

    def measure_words(self, measure: Measure) -> Mapping[str, str]:
        word, feminine = measure.column, measure.gender == "f"
        if measure.is_unit:
            elided = f"d'{word}" if _VOWELS.match(word) else f"de {word}"
            return {
                "measure": word,
                "le_m": f"les {word}",
                "du_m": f"des {word}",
                "total": f"le nombre total {elided}",
                "average": f"le nombre moyen {elided}",
                "highest": f"le plus {elided}",
                "lowest": f"le moins {elided}",
                "how_much": f"Combien {elided}",
                "how_much_low": f"combien {elided}",
            }
        the = _french(feminine, word)
        e = "e" if feminine else ""
        plus = "la" if feminine else "le"
        return {
            "measure": word,
            "le_m": the,
            "du_m": _french_of(the),
            "total": f"{the} total{e}",
            "average": f"{the} {'moyenne' if feminine else 'moyen'}",
            "highest": f"{the} {plus} plus élevé{e}",
            "lowest": f"{the} {plus} moins élevé{e}",
            "how_much": f"{'Quelle' if feminine else 'Quel'} {word}",
            "how_much_low": f"{'quelle' if feminine else 'quel'} {word}",
        }

    def category_words(self, category: Category) -> Mapping[str, str]:
        feminine = category.gender == "f"
        return {
            "cat": category.column,
            "which_cat": f"{'quelle' if feminine else 'quel'} {category.column}",
            "Which_cat": f"{'Quelle' if feminine else 'Quel'} {category.column}",
            "the_cat": _french(feminine, category.column),
            "each_cat": f"chaque {category.column}",
        }

    def name_words(self, name: Name) -> Mapping[str, str]:
        return {
            "name": name.column,
            "the_name": _french(name.gender == "f", name.column),
            "names": f"les {name.plural}",
            "Quels_names": "Quelles" if name.gender == "f" else "Quels",
        }


def _spanish_of(phrase: str) -> str:
    """`de` and a phrase with a definite article."""
    return f"del {phrase[3:]}" if phrase.startswith("el ") else f"de {phrase}"


class SpanishPhrases(_RomancePhrases):
    """Spanish: gendered articles, also of possessives."""

    either = "o"

    def clause(self, predicate: str) -> str:
        return f"que {predicate}"

    def noun_phrases(self) -> Mapping[str, str]:
        a = "a" if self.feminine else "o"
        article = self._possessive("mis", f"nuestr{a}s", f"l{a}s")
        bare, domain = self.bare(), self.domain
        source = f" {self.topic.source}" if self.topic.source else ""
        el = "la" if self.feminine else "el"
        return {
            "np": f"{article} {bare}",
            "the_np": f"l{a}s {bare}",
            "bare": bare,
            "all": f"{article} {domain.many}{source}",
            "cuantos": f"cuánt{a}s",
            "los": f"l{a}s",
            "el_one": f"{el} {domain.one}",
            "newest": f"{el} {domain.one} más reciente",
            "oldest": f"{el} {domain.one} más antigu{a}",
            "el_mas_reciente": f"{el} más reciente",
            "el_mas_antiguo": f"{el} más antigu{a}",
            "cada": f"cada {domain.one}",
            "todos": f"tod{a}s",
            "el": el,
        }

    def compared(self, condition: Compares) -> str:
        measure, slot = condition.measure, condition.measure.slot
        words = {">": "más de", "<": "menos de", ">=": "al menos"}[condition.op]
        if measure.is_unit:
            return f"con {words} {slot} {measure.column}"
        if measure.kind == "money" and measure == self.domain.measures[0] and self.picks.random() < 0.7:
            return f"de {words} {slot} euros"
        return f"con {'una' if measure.gender == 'f' else 'un'} {measure.column} de {words} {slot}"

    def measure_words(self, measure: Measure) -> Mapping[str, str]:
        word, feminine = measure.column, measure.gender == "f"
        if measure.is_unit:
            return {
                "measure": word,
                "el_m": f"{'las' if feminine else 'los'} {word}",
                "del_m": f"de {'las' if feminine else 'los'} {word}",
                "total": f"el número total de {word}",
                "average": f"el número medio de {word}",
                "highest": f"más {word}",
                "lowest": f"menos {word}",
                "how_much": f"Cuánt{'a' if feminine else 'o'}s {word}",
                "how_much_low": f"cuánt{'a' if feminine else 'o'}s {word}",
            }
        the = f"{'la' if feminine else 'el'} {word}"
        return {
            "measure": word,
            "el_m": the,
            "del_m": _spanish_of(the),
            "total": f"{the} total",
            "average": f"{the} medi{'a' if feminine else 'o'}",
            "highest": f"{'la' if feminine else 'el'} mayor {word}",
            "lowest": f"{'la' if feminine else 'el'} menor {word}",
            "how_much": f"Qué {word}",
            "how_much_low": f"qué {word}",
        }

    def category_words(self, category: Category) -> Mapping[str, str]:
        return {
            "cat": category.column,
            "which_cat": f"qué {category.column}",
            "Which_cat": f"Qué {category.column}",
            "the_cat": f"{'la' if category.gender == 'f' else 'el'} {category.column}",
            "each_cat": f"cada {category.column}",
        }

    def name_words(self, name: Name) -> Mapping[str, str]:
        feminine = name.gender == "f"
        return {
            "name": name.column,
            "the_name": f"{'la' if feminine else 'el'} {name.column}",
            "names": f"{'las' if feminine else 'los'} {name.plural}",
        }


PHRASES: Mapping[str, type[Phrases]] = {
    "en": EnglishPhrases,
    "de": GermanPhrases,
    "fr": FrenchPhrases,
    "es": SpanishPhrases,
}
