"""Work for the tests of kept work, in a module that takes no time to import."""

from collections.abc import Sequence

from judging.files.kept_work import KeptLine, Origin


class Square(KeptLine):
    """Square of a number; a negative one stands for a failure."""

    row: int
    square: int

    @property
    def origin(self) -> Origin:
        return self.row, self.key

    @property
    def failed(self) -> bool:
        return self.square < 0


def origin(number: int) -> Origin:
    return number, f"square of {number}"


def squares(numbers: Sequence[int]) -> list[Square]:
    return [Square(row=n, key=f"square of {n}", square=n * n) for n in numbers]
