"""Pictures of any mode as a person sees them: upright, in RGB.

This file imports nothing of custos: the program that decodes pictures for the service takes it too.
"""

import struct

from PIL import Image, ImageOps
from PIL.Image import Transpose

_BYTE_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}
_ORIENTATION_TAG = 0x0112
_BITS_TAG = 0x0102
_PHOTOMETRIC_TAG = 0x0106
_WHITE_IS_ZERO = 0
_TURNS = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}


class UnclearShades(ValueError):
    """Refusal of a picture whose numbers do not say which of them is white."""


def as_rgb(picture: Image.Image) -> Image.Image:
    """Return a picture whose file was just opened: upright, in RGB, without metadata.

    Transparent parts are white, and 16 bits of grey keep their range. Pillow's own ``convert``
    shows what a viewer hides: the colours below transparent parts. Of grey in 16 bits it makes all
    but the darkest 256 values white. Raises ``UnclearShades`` if grey has 32 bits or a sign, as in
    measurements. Any number may be white.
    """
    turn = _TURNS.get(orientation(picture))  # now, as loading a PNG may find another
    seen = _rgb(picture)
    if turn is not None:
        seen = seen.transpose(turn)
    seen.info.clear()
    return seen


def upright_size(picture: Image.Image) -> tuple[int, int]:
    """Return width and height of what :func:`as_rgb` makes of an opened picture."""
    width, height = picture.size
    return (height, width) if orientation(picture) >= 5 else (width, height)


def orientation(picture: Image.Image) -> int:
    """Return the EXIF orientation, 1 to 8, that stands before the pixels of an opened file.

    It is 1, which is upright, where EXIF says nothing else or is broken. Pillow's own
    ``exif_transpose`` needs the pixels, and fails or warns where other parts of EXIF are broken.
    """
    exif = picture.info.get("exif")
    if not isinstance(exif, bytes):  # a PNG's text may have the name
        return 1
    mark = b"Exif\0\0"
    exif = exif.removeprefix(mark).removeprefix(mark)  # Pillow adds one to that of a PNG
    order = _BYTE_ORDERS.get(exif[:4])
    if order is None:
        return 1
    try:
        (start,) = struct.unpack_from(f"{order}I", exif, 4)
        (num_entries,) = struct.unpack_from(f"{order}H", exif, start)
        for number in range(num_entries):
            tag, _, _, value = struct.unpack_from(f"{order}HHIH", exif, start + 2 + 12 * number)
            if tag == _ORIENTATION_TAG:
                return value if value in _TURNS else 1
    except struct.error:  # it ends too soon
        return 1
    return 1


def _rgb(picture: Image.Image) -> Image.Image:
    if picture.mode in ("I", "F"):
        raise UnclearShades
    if picture.mode.startswith("I;16"):
        return _grey(picture).convert("RGB")
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    ground = Image.new("RGBA", picture.size, "white")
    ground.alpha_composite(picture.convert("RGBA"))
    return ground.convert("RGB")


def _grey(picture: Image.Image) -> Image.Image:
    """Return a picture whose grey has 16 bits, or 12 as in some TIFFs, with 8 bits."""
    tags = getattr(picture, "tag_v2", {})  # of a TIFF
    step = (2 ** tags.get(_BITS_TAG, (16,))[0] - 1) / 255
    # Without the addend the division would round some shades to the darker one beside them.
    grey = picture.convert("I").point(lambda value: value / step + 1e-3).convert("L")
    return ImageOps.invert(grey) if tags.get(_PHOTOMETRIC_TAG) == _WHITE_IS_ZERO else grey
