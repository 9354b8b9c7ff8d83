"""What was on *Positions on a grid* before *Rotary positions* had a page: addresses, and the reader's record."""

from addresses import page

ADDRESSES = [
    "rotary-positions-on-a-grid", "attention-with-turned-queries-and-keys", "a-silent-origin", "which-base",
    "diagonals", "coordinates-in-a-box", "four-conventions-no-crash", "the-same-model-at-another-resolution",
    "five-schemes-side-by-side", "many-images-in-one-sequence", "def-rope-axial", "thm-rope",
    "equation-eq-rope-angles", "equation-eq-rope-turn", "equation-eq-rope-score", "equation-eq-rope-mixed",
    "equation-eq-box", "fig-positions-rope", "exercise-rope-2d-axial", "exercise-rope-2d-attention",
    "exercise-rope-2d-mixed", "exercise-dinov3-coordinates", "exercise-packed-attention-mask",
    "quiz-positions-offset", "quiz-positions-origin", "quiz-positions-mask",
]  # fmt: skip
STAYED = [
    "positions", "positions-on-a-grid", "a-bag-of-patches", "what-a-position-is-worth", "what-a-raster-table-knows",
    "one-table-or-one-for-each-axis", "from-one-dimension-to-two", "sines-and-cosines-on-a-grid",
    "a-row-term-plus-a-column-term", "the-few-fast-frequencies", "waves-painted-over-the-image",
    "a-model-with-fixed-positions-end-to-end", "one-table-four-layouts", "positions-traps",
    "traps-and-how-they-show", "positions-read-next", "read-next", "def-sincos-2d", "thm-positions-gram",
    "equation-eq-factorized", "equation-eq-gram", "equation-eq-sincos-2d", "fig-positions-similarity",
    "fig-positions-waves", "exercise-factorized-table", "exercise-sincos-2d", "quiz-positions-bag",
    "quiz-positions-dot", "quiz-positions-parameters",
]  # fmt: skip
# Names under which a browser keeps what a reader wrote and answered
RECORD = [
    "exercise/factorized_table", "exercise/sincos_2d", "exercise/rope_2d_axial", "exercise/rope_2d_attention",
    "exercise/rope_2d_mixed", "exercise/dinov3_coordinates", "exercise/packed_attention_mask",
    "quiz/quiz-positions-bag", "quiz/quiz-positions-parameters", "quiz/quiz-positions-dot",
    "quiz/quiz-positions-offset", "quiz/quiz-positions-origin", "quiz/quiz-positions-mask",
]  # fmt: skip


def test_every_old_address_leads_to_its_place(site):
    old, new = (page(site / "book" / f"{name}.html") for name in ("positions", "rotary"))
    assert [name for name in STAYED if old.find(id=name) is None] == []
    for name in ADDRESSES:
        assert old.find(id=name).a["href"] == f"rotary.html#{name}", name
        assert new.find(id=name) is not None, name
    assert len(old.select(".moved")) == len(ADDRESSES)


def test_what_a_reader_wrote_and_answered_is_found_again(site):
    listed = [item["data-record"] for item in page(site / "book/progress.html").select("[data-record]")]
    assert [name for name in RECORD if listed.count(name) != 1] == []
    exercises = {one["data-exercise"] for name in ("positions", "rotary")
                 for one in page(site / "book" / f"{name}.html").select("[data-solve]")}  # fmt: skip
    assert exercises >= {name.removeprefix("exercise/") for name in RECORD if name.startswith("exercise/")}
