"""The exception that means "the person at the keyboard can fix this", and what engines raise."""


class CustosError(Exception):
    """A mistake in what the user gave (a file, a row, a flag, a missing backbone).

    Entry points print its message on one line without a traceback. The message names what is wrong,
    shows the value, and says what to do instead.
    """


class Missing(CustosError):
    """What is fetched or made beforehand is not there: a backbone, a split."""


class Unparsed(CustosError):
    """A model's answer is none of the labels."""


class RowsFailed(Exception):
    """Some of the prompts put to an engine came to nothing; the others may be put again.

    Args:
        errors: Why, by the prompt's index.
    """

    def __init__(self, errors: dict[int, CustosError]) -> None:
        super().__init__("; ".join(str(error) for error in errors.values()))
        self.errors = errors
