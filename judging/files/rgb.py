"""Pictures of any mode as a person sees them, in RGB.

This file imports nothing of custos: the program that decodes pictures for the service takes it too.
"""

from __future__ import annotations

from PIL import Image


def as_rgb(picture: Image.Image) -> Image.Image:
    """Return a picture in RGB, its transparent parts over white, 16 bits of grey in their range.

    Pillow's own ``convert`` shows what a viewer hides: the colours below transparent parts. Of grey
    in 16 bits it makes all but the darkest 256 values white.
    """
    if picture.mode.startswith("I;16"):
        return picture.convert("I").point(lambda value: value / 257).convert("L").convert("RGB")
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    ground = Image.new("RGBA", picture.size, "white")
    ground.alpha_composite(picture.convert("RGBA"))
    return ground.convert("RGB")
