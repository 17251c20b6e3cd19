"""Makes the fonts of figures and reports: letters of Noto Sans, and signs of Noto Sans Math that it lacks.

    python3 make.py FOLDER

FOLDER holds NotoSans-Regular.ttf, NotoSans-Bold.ttf and NotoSansMath-Regular.ttf. Needs fonttools and brotli.
The TTF files are for PNG, the WOFF2 files are for pages.
"""

import os
import sys

from fontTools import merge, subset
from fontTools.ttLib import TTFont

LETTERS = [
    range(0x20, 0x7F), range(0xA0, 0x180), range(0x384, 0x3CF), range(0x2010, 0x2016), range(0x2018, 0x201F),
    [0x2022, 0x2026, 0x2030, 0x20AC], range(0x2070, 0x207F), range(0x2080, 0x208A),
]  # fmt: skip
SIGNS = [0x2190, 0x2192, 0x2208, 0x2211, 0x2212, 0x221A, 0x221E, 0x2248, 0x2260, 0x2264, 0x2265]
here = os.path.dirname(os.path.abspath(__file__))


def part(file, letters):
    options = subset.Options(hinting=False, layout_features=[], notdef_outline=True, name_IDs=[0, 1, 2, 4, 5, 6, 13, 14])
    options.drop_tables += ["GPOS", "GSUB", "GDEF", "MATH"]
    font = subset.load_font(os.path.join(sys.argv[1], file), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=letters)
    subsetter.subset(font)
    path = os.path.join(here, f"part-{file}")
    font.save(path)
    return path


for weight in ["Regular", "Bold"]:
    letters = part(f"NotoSans-{weight}.ttf", [letter for group in LETTERS for letter in group])
    known = TTFont(letters).getBestCmap()
    signs = part("NotoSansMath-Regular.ttf", [sign for sign in SIGNS if sign not in known])
    font = merge.Merger().merge([letters, signs])
    # Same file, whenever it is made.
    font.recalcTimestamp = False
    name = os.path.join(here, f"noto-sans-{weight.lower()}")
    font.save(name + ".ttf")
    font.flavor = "woff2"
    font.save(name + ".woff2")
    os.remove(letters)
    os.remove(signs)
