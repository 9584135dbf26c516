"""Invented people, places, titles and things, in English and Chinese.

Names are put together from syllables and short lists, so that no judge can know a fact about them
and none occurs often enough to be remembered.
"""

from __future__ import annotations

from random import Random
from typing import Literal

Language = Literal["en", "zh"]

ONSETS = "b br d dr f g gr h k kl l m n p pr r s st t tr v w z sh ch".split()
VOWELS = "a e i o u a e i o ai ea ou".split()
CODAS = ["", "", "n", "r", "l", "s", "m", "k", "nd", "rn", "lt"]
REAL_WORDS = "nine seven zero more none some like made same time here there these those".split()
"""Words that syllables can make by chance and that would not read as a name."""
PLACE_ENDINGS = ["", "", "", "ton", "mere", "ova", "burg", "ia", "stad", "wick", " Bay", " Hills"]
ADJECTIVES = "Silver Broken Quiet Burning Distant Hollow Crimson Last Winter Golden Paper".split()
NOUNS = "Harbour Lantern Orchard Mirror River Garden Compass Tower Feather Clock Bridge".split()
MATERIALS = "tin copper oak clay wool glass paper bone cork silk".split()
OBJECTS = "lanterns bells combs bowls ropes boxes hooks masks spoons drums".split()

ZH_SURNAMES = "林周吴郑孙钱冯陈蒋沈韩杨朱秦许何吕施张孔曹严金魏陶姜谢邹章苏潘葛范彭鲁马方袁柳"
ZH_GIVEN = "远舟清明文静书宁晓岚思齐若云子安海棠秋月青松立言知行景行慕白念慈承志雨桐星河"
ZH_SOUNDS = "米拉托尔文卡维索林达贝罗纳格雷森帕洛迪加莫斯特兰奥塞伊芙泽凡科佩里乌萨"
ZH_PLACE_HEADS = "青石云溪金沙白鹭长亭松风南屏碧潭红枫雁落星塘竹山梅岭银杏鹿鸣"
ZH_PLACE_ENDINGS = "镇城港村湾"
ZH_ADJECTIVES = "银色 破碎 安静 燃烧 遥远 空心 深红 最后 冬日 金色 纸上".split()
ZH_NOUNS = "港湾 灯笼 果园 镜子 河流 花园 罗盘 高塔 羽毛 钟声 长桥".split()
ZH_MATERIALS = "锡 铜 橡木 陶 羊毛 玻璃 纸 骨 软木 丝".split()
ZH_OBJECTS = "灯笼 铃铛 梳子 碗 绳子 盒子 钩子 面具 勺子 鼓".split()


def word(rng: Random, language: Language, syllables: int = 2) -> str:
    """Invent a single name: ``Tolven``, or its Chinese-sounding counterpart ``托尔文``."""
    if language == "zh":
        return "".join(rng.sample(ZH_SOUNDS, syllables + 1))
    while True:
        parts = [rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(syllables)]
        name = "".join(parts) + rng.choice(CODAS)
        if name not in REAL_WORDS:
            return name.capitalize()


def sibling(rng: Random, name: str, language: Language) -> str:
    """Invent a name that looks like ``name`` but ends in another syllable."""
    while True:
        if language == "zh":
            changed = name[:-1] + rng.choice(ZH_GIVEN if len(name) < 4 else ZH_SOUNDS)
        else:
            changed = name[: max(2, len(name) - 3)] + rng.choice(ONSETS) + rng.choice(VOWELS)
            changed += rng.choice(CODAS)
        if changed != name and not changed.startswith(name) and not name.startswith(changed):
            return changed


def person(rng: Random, language: Language) -> tuple[str, str, str]:
    """Invent a person: given name, middle name and surname.

    The middle name may be empty; a Chinese one always is.
    """
    if language == "zh":
        return "".join(rng.sample(ZH_GIVEN, rng.choice((1, 2, 2)))), "", rng.choice(ZH_SURNAMES)
    middle = word(rng, language, 2) if rng.random() < 0.4 else ""
    return word(rng, language, 2), middle, word(rng, language, rng.choice((2, 3)))


def full_name(rng: Random, language: Language) -> str:
    """Invent a person who has no middle name."""
    given, _, surname = person(rng, language)
    return surname + given if language == "zh" else f"{given} {surname}"


def town(rng: Random, language: Language) -> str:
    """Invent a town."""
    if language == "zh":
        return "".join(rng.sample(ZH_PLACE_HEADS, 2)) + rng.choice(ZH_PLACE_ENDINGS)
    return word(rng, language) + rng.choice(PLACE_ENDINGS)


def title(rng: Random, language: Language) -> str:
    """Invent the title of a song, book or film, without an article or quotation marks."""
    if language == "zh":
        return rng.choice(ZH_ADJECTIVES) + "的" + word(rng, "zh", 1) + rng.choice(ZH_NOUNS)
    return f"{rng.choice(ADJECTIVES)} {rng.choice(NOUNS)} of {word(rng, 'en')}"


def thing(rng: Random, language: Language) -> str:
    """Invent a kind of goods: ``tin lanterns``."""
    if language == "zh":
        return rng.choice(ZH_MATERIALS) + rng.choice(ZH_OBJECTS)
    return f"{rng.choice(MATERIALS)} {rng.choice(OBJECTS)}"
