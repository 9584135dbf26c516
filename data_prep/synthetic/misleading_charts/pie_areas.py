"""Areas that the slices of a manipulated pie take up on the page."""

from __future__ import annotations

import math
from collections.abc import Sequence

SHAPE_3D = 0.5
"""Height of a tilted pie's ellipse by its width."""
WALL_3D = 0.32
"""Height of a tilted pie's wall by its radius."""
POP_RADIUS = 1.25
"""Radius of a popped-out slice by the others'."""
POP_DISTANCE = 0.14
"""Distance of its tip from the middle, by the others' radius."""


def tilted_areas(shares: Sequence[float], start: float) -> list[float]:
    """Return the visible area of every slice of a tilted pie, in percent of its upper face."""
    areas, angle = [], start
    for share in shares:
        turn = 3.6 * share
        width = _front_width(angle, angle + turn)
        areas.append(share + 100 * WALL_3D * width / (math.pi * SHAPE_3D))
        angle += turn
    return areas


def _front_width(start: float, end: float) -> float:
    """Return the width that an arc of a unit circle covers on its front, the lower half."""
    width = 0.0
    for turn in (-360, 0, 360):
        low, high = max(start + turn, 180.0), min(end + turn, 360.0)
        if low < high:
            width += math.cos(math.radians(high)) - math.cos(math.radians(low))
    return width


def popped_areas(shares: Sequence[float], start: float) -> list[float]:
    """Return the areas of a tilted pie whose first slice, at the front, is popped out."""
    first, *others = tilted_areas(shares, start)
    wall = first - shares[0]
    return [POP_RADIUS**2 * shares[0] + POP_RADIUS * wall, *others]
