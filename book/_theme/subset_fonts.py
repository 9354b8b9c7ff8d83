"""Cut the five faces down to what a course on transformers prints: a reader's first page waits for them.

    npm install --prefix _build/fonts @fontsource/stix-two-math@5 @fontsource/source-code-pro@5 \\
        @fontsource-variable/stix-two-text@5 @fontsource-variable/source-sans-3@5
    python book/_theme/subset_fonts.py _build/fonts/node_modules

Run by hand when a character is missing; needs brotli. The license of the two Source faces keeps their name for the
whole fonts, so that ours carry none: the style sheet calls them Course Sans and Course Mono.
"""

import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib import instancer

FONTS = Path(__file__).parent / "course/static/fonts"
TEXT = """
0020-007E 00A0-00A3 00A5 00A7-00A9 00AB 00AC 00AE 00B0-00B7 00BB-00DD 00DF-00FD 00FF 0131 0152 0153
2009 2013 2014 2018-201A 201C-201E 2022 2026 2032 2033 2039 203A 20AC 2122 2191 2193 2212
"""
FORMULAS = """
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


def cut(source, ranges, features, weight=None):
    """A font with those characters and layout features alone and, of a variable one, with that weight alone."""
    options = subset.Options(hinting=False, notdef_outline=True, layout_features=features, name_IDs=[0, 13, 14])
    font = TTFont(source)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=codepoints(ranges))
    cutter.subset(font)
    return instancer.instantiateVariableFont(font, {"wght": weight}) if weight else font


def main(modules):
    static, variable = modules / "@fontsource", modules / "@fontsource-variable"
    text = variable / "stix-two-text/files"
    faces = {
        "stix-two-text": cut(text / "stix-two-text-latin-wght-normal.woff2", TEXT, ["kern", "liga"]),
        # Words in bold italics are few, and browsers can slant and thicken
        "stix-two-text-italic": cut(text / "stix-two-text-latin-wght-italic.woff2", TEXT, ["kern", "liga"], 400),
        "stix-two-math": cut(
            static / "stix-two-math/files/stix-two-math-latin-400-normal.woff2", FORMULAS, ["kern", "ssty"]
        ),
        "course-sans": cut(
            variable / "source-sans-3/files/source-sans-3-latin-wght-normal.woff2", TEXT, ["kern", "liga"]
        ),
        "course-mono": cut(static / "source-code-pro/files/source-code-pro-latin-400-normal.woff2", TEXT, []),
    }
    narrow_radicals(faces["stix-two-math"])
    for name, font in faces.items():
        font.flavor = "woff2"
        target = FONTS / f"{name}.woff2"
        font.save(target)
        print(f"{target.name}: {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
