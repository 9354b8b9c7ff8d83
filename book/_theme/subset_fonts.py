"""Cut STIX Two Math down to what a course on transformers prints: a reader's first page waits for it.

    npm pack @fontsource/stix-two-math && tar xzf fontsource-stix-two-math-*.tgz
    python book/_theme/subset_fonts.py package/files/stix-two-math-latin-400-normal.woff2

Run by hand when a symbol is missing; needs brotli. The other faces (STIX Two Text,
Source Sans 3, Source Code Pro) are the Latin files of @fontsource, as they come.
"""

import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

RANGES = """
0020-007E 00A0 00AC 00B1 00B7 00D7 00F7 02C6 02DC 0302-0304 0307 0308 0303 0338 0391-03C9 03D1 03D5 03F5 20D7
2016 2026 2032 2033 2044 2061-2064 2190-2194 21A6 21D0 21D2 21D4 27F6 27F7 27FA
2200 2202-2208 220B 220F 2211-2213 2217 2218 221A 221D-2220 2223 2225 2227-222B 2248 2260-2265 226A 226B
2282 2283 2286 2287 2295 2297 2299 22A4 22A5 22C5 22EE-22F1 2308-230B 23DE 23DF 27E8 27E9
2102 210E 2113 2115 211A 211D 2124 1D400-1D467 1D53C 1D5B3 1D6E2-1D755 1D7CE-1D7D7
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
    options = subset.Options(flavor="woff2", hinting=False, notdef_outline=True, layout_features=["kern", "ssty"])
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
