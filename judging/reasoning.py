"""Thoughts of reasoning models, which are no part of the answer that is graded."""

import re

_CLOSINGS = {
    **{f"<{name}>": f"</{name}>" for name in ("think", "thinking", "thought", "reasoning")},
    "<seed:think>": "</seed:think>",
    "[think]": "[/think]",  # Magistral, in capitals
    "◁think▷": "◁/think▷",  # Kimi
    "<|start_thinking|>": "<|end_thinking|>",  # Command A, in capitals
    "<|begin_of_thought|>": "<|end_of_thought|>",  # OpenThinker
    "<|inner_prefix|>": "<|inner_suffix|>",  # Apertus
    "<|channel>": "<channel|>",  # Gemma 4
}
"""The mark that ends a block of thoughts, by the mark that begins it, in lower case."""


def _any_of(marks: tuple[str, ...]) -> re.Pattern[str]:
    # Only ASCII letters have two cases here: "ı" is no "i".
    return re.compile("|".join(map(re.escape, marks)), re.IGNORECASE | re.ASCII)


_MARK = _any_of((*_CLOSINGS, *_CLOSINGS.values()))
_CLOSING = _any_of(tuple(_CLOSINGS.values()))
_CLOSING_OF = {opening: _any_of((closing,)) for opening, closing in _CLOSINGS.items()}
_FENCE = re.compile(r"^[ \t]{0,8}(?:```|~~~)", re.MULTILINE)
_BACKTICKS = re.compile("`+")
_QUOTES = "`\"'“”‘’«»「」『』"
_SENTENCE_ENDS = ".!?:;…。！？：；)>*"
_BLANK = re.compile("[\\s\ufeff\u200b]*")
_NEAR = 8
"""Most spaces between a mark and what stands beside it."""

_MESSAGE_ENDS = re.compile(r"<\|(?:end|return|call|start)\|>")
_HEADER_REST = r"[^<]{0,80}(?:<\|constrain\|>[^<]{0,40})?<\|message\|>"
_FIRST_HEADER = re.compile(
    rf"\s*(?:<\|start\|>assistant)?(?:<\|channel\|>)?\s?(analysis|commentary|final){_HEADER_REST}"
)
_FINAL_HEADER = re.compile(rf"<\|channel\|>\s?final{_HEADER_REST}")
"""Header of the message for the user, as gpt-oss writes it."""
_BARE_FIRST, _BARE_FINAL = "analysis", "assistantfinal"
"""What is left of both headers where control tokens were not written out."""


def without_thoughts(response: str) -> str:
    """Return a response without what its model thought before and between its words.

    A block of thoughts begins with the response, a line or after a sentence, with a mark such as
    ``<think>``, and ends with the mark's counterpart. Without one, a block at the beginning goes on
    to the end: the response is empty. A lone ``</think>`` ends a block that began in the prompt.
    Marks that the response only speaks of are text: those in code, in quotation marks and within a
    sentence. Takes linear time.

    A response without thoughts is returned as it is.
    """
    if (final := _final_message(response)) is not None:
        return final
    return _Scan(response).rest()


class _Scan:
    """Reads a text from its beginning to its end, and leaves its blocks of thoughts out."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._kept: list[str] = []
        self._start = 0
        """Where the text begins that is read and neither kept nor left out yet."""
        self._at = self._line_start = self._num_backticks = 0
        self._is_fenced = self._speaks_of_marks = False
        self._never_closed: set[str] = set()
        """Openings that no closing follows from here on."""
        self._always_quoted: set[str] = set()
        """Openings whose closings are all in quotation marks from here on."""

    def rest(self) -> str:
        """Return the text without its blocks; the text itself if it has none."""
        text, first = self._text, self._after_blank(0)
        mark = _MARK.search(text)
        if mark and mark.start() != first and not _CLOSING.search(text):
            return text
        while mark:
            self._read_to(mark.start())
            opening, end = mark[0].lower(), mark.end()
            if opening not in _CLOSINGS:
                if self._ends_block(mark):
                    self._leave_out(mark.start(), end)
                    self._kept.clear()
                    self._is_fenced = False
                    first = self._after_blank(end)
            elif mark.start() == first and not self._kept:
                end = self._end_of_block(opening, end) or len(text)
                self._leave_out(mark.start(), end)
                self._kept.clear()
                first = self._after_blank(end)
            elif self._begins_block(mark) and (closed := self._end_of_block(opening, end)):
                self._leave_out(mark.start(), end := closed)
            else:
                self._speaks_of_marks = True
            mark = _MARK.search(text, end)
        if not self._start:
            return text
        return "".join([*self._kept, text[self._start :]]).strip()

    def _after_blank(self, position: int) -> int:
        blank = _BLANK.match(self._text, position)
        return blank.end() if blank else position

    def _read_to(self, position: int) -> None:
        """Note what is code, and where lines begin, up to a position further on."""
        text, at = self._text, self._at
        if sum(1 for _ in _FENCE.finditer(text, at, position)) % 2:
            self._is_fenced = not self._is_fenced
        line_start = text.rfind("\n", at, position) + 1
        if line_start:
            self._line_start, self._num_backticks, at = line_start, 0, line_start
        self._num_backticks += sum(1 for _ in _BACKTICKS.finditer(text, at, position))
        self._at = position

    def _leave_out(self, start: int, end: int) -> None:
        """Keep what stands before a block, and go on behind it as at the start of a line."""
        self._kept.append(self._text[self._start : start])
        self._start = self._at = self._line_start = end
        self._num_backticks = 0

    def _begins_block(self, mark: re.Match[str]) -> bool:
        """Tell whether an opening that is not at the beginning begins a block."""
        if self._is_code or self._is_quoted(mark):
            return False
        before = self._before(mark)
        return not before or before[-1] in _SENTENCE_ENDS

    def _ends_block(self, mark: re.Match[str]) -> bool:
        """Tell whether a closing without an opening ends a block that began in the prompt."""
        if self._is_code or self._is_quoted(mark):
            return False
        before = self._before(mark)
        if not before or self._speaks_of_marks:
            return not before
        after = self._text[mark.end() : mark.end() + _NEAR].lstrip(" \t")
        ends_line = after.startswith("\n") and self._after_blank(mark.end()) < len(self._text)
        is_glued = self._text[mark.end() : mark.end() + 1].isalnum()
        return before[-1] in _SENTENCE_ENDS or ends_line or is_glued

    def _end_of_block(self, opening: str, position: int) -> int | None:
        """Find where the block ends that has begun before a position; ``None`` if nowhere."""
        if opening in self._never_closed:
            return None
        closing = _CLOSING_OF[opening]
        first = found = closing.search(self._text, position)
        while found and opening not in self._always_quoted and self._is_quoted(found):
            found = closing.search(self._text, found.end())
        if first is None:
            self._never_closed.add(opening)
            return None
        if found is None:
            self._always_quoted.add(opening)
        return (found or first).end()

    @property
    def _is_code(self) -> bool:
        return self._is_fenced or self._num_backticks % 2 == 1

    def _is_quoted(self, mark: re.Match[str]) -> bool:
        before = self._text[mark.start() - 1 : mark.start()]
        after = self._text[mark.end() : mark.end() + 1]
        return all(character and character in _QUOTES for character in (before, after))

    def _before(self, mark: re.Match[str]) -> str:
        """Return the end of what stands before a mark in its line, without spaces."""
        return self._text[max(self._line_start, mark.start() - _NEAR) : mark.start()].rstrip(" \t")


def _final_message(text: str) -> str | None:
    """Return the final message of a response of gpt-oss; ``None`` if its form is another.

    A response that ends within its analysis has an empty one.
    """
    first = _FIRST_HEADER.match(text)
    if first is None:
        is_bare = text.lstrip().startswith(_BARE_FIRST) and _BARE_FINAL in text
        return text.rpartition(_BARE_FINAL)[2].strip() if is_bare else None
    headers = [first] if first[1] == "final" else []
    headers += _FINAL_HEADER.finditer(text)
    if not headers:  # some servers write the header of the analysis alone
        rest = text.rpartition("<|end|>")
        return "" if "<|" in rest[2] or not rest[1] else rest[2].strip()
    return _MESSAGE_ENDS.split(text[headers[-1].end() :], maxsplit=1)[0].strip()
