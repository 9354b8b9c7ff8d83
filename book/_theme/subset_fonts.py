"""Cut STIX Two Math down to what a course on transformers prints.

    npm pack @fontsource/stix-two-math && tar xzf fontsource-stix-two-math-*.tgz
    python book/_theme/subset_fonts.py package/files/stix-two-math-latin-400-normal.woff2

Run by hand when a symbol is missing; needs fonttools and brotli. The other faces (STIX Two Text,
Source Sans 3, Source Code Pro) are the Latin files of @fontsource, as they come.
"""

import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

RANGES = """
0020-007E 00A0-00FF 0300-030F 0332 0338 0391-03C9 03D1 03D5 03D6 03F1 03F5 20D6 20D7 FE00
2010 2013 2014 2016 2018 2019 201C 201D 2020-2022 2026 2032-2034 203E 2044 2061-2064
2190-2199 21A6 21AA 21C4 21CC 21D0 21D2 21D4 27F5-27FA 27FC
2200-226F 2282 2283 2286 2287 228A 2295-2299 22A2 22A4 22A5 22A8 22C0-22C6 22EE-22F1
2308-230B 23B4 23B5 23DE 23DF 25A1 25B3 25CB 25CF 2605 2713 2717 27E6-27E9 2A00-2A02
2102 210A-210E 210F-2113 2115 2118-211D 2124 212C 212F-2131 2133-2135
1D400-1D4CF 1D538-1D56B 1D5A0-1D5D3 1D6A8-1D755 1D7CE-1D7E1
"""


def codepoints(ranges):
    """Every code point of a list of hexadecimal ranges."""
    for part in ranges.split():
        first, _, last = part.partition("-")
        yield from range(int(first, 16), int(last or first, 16) + 1)


def narrow_radicals(font):
    """Make the taller root signs as wide as the first one: Chromium leaves room for the widest, after every root."""
    variants = font["MATH"].table.MathVariants
    root = font.getBestCmap()[0x221A]
    construction = variants.VertGlyphConstruction[variants.VertGlyphCoverage.glyphs.index(root)]
    width = font["hmtx"][root][0]
    names = [record.VariantGlyph for record in construction.MathGlyphVariantRecord]
    names += [part.glyph for part in construction.GlyphAssembly.PartRecords]
    for name in names:
        glyph, advance = font["glyf"][name], font["hmtx"][name][0]
        glyph.coordinates.scale((width / advance, 1))
        glyph.coordinates.toInt()
        glyph.recalcBounds(font["glyf"])
        font["hmtx"][name] = (width, glyph.xMin)


def main(source):
    options = subset.Options(
        flavor="woff2", hinting=False, notdef_outline=True, layout_features=["kern", "ssty", "mark", "mkmk", "ccmp"]
    )
    font = TTFont(source)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=codepoints(RANGES))
    cutter.subset(font)
    narrow_radicals(font)
    target = Path(__file__).parent / "course/static/fonts/stix-two-math.woff2"
    subset.save_font(font, target, options)
    print(f"{target}: {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1])
