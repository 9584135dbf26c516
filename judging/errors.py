"""The one exception that means "the person at the keyboard can fix this"."""


class CustosError(Exception):
    """A mistake in what the user gave (a file, a row, a flag, a missing backbone).

    Entry points print its message on one line without a traceback. The message names what is wrong,
    shows the value, and says what to do instead.
    """
