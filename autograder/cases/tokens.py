"""The exercises of the chapter *Tokens*."""

import numpy as np

from autograder.judging.exercise import Case, Exercise, Raises
from solutions import tokens as chapter

WORDS = ("the", "cat", "dog", "chased", "The", "dog.", "a", "red", "bird", "saw", "sat", "and", "on", "mat", "cat,")


def counting(*shape):
    """0, 1, 2, … in that shape: every entry is its own address."""
    return np.arange(float(np.prod(shape))).reshape(shape)


# --------------------------------------------------------------------------------------------- token_ids

token_ids = Exercise(chapter.token_ids, points=1, difficulty=1, minutes=5, section="From a sentence to a matrix")

SMALL = {"dog": 7, "the": 0, "cat": 3, "chased": 12, "The": 5, "dog.": 9}


@token_ids.where
def word_of_id(index, text, vocabulary):
    return f"the id of {text.split()[index[0]]!r}"


@token_ids.visible
def one_sentence():
    "A sentence in which a word comes twice"
    yield Case("the cat chased the dog", SMALL, why="the ids follow the text, word by word")


@token_ids.visible
def as_it_stands():
    "Capitals and full stops belong to the word"
    yield Case("The cat chased the dog.", SMALL, why="The and the are two words, and so are dog and dog.")


@token_ids.visible
def white_space():
    "Any white space separates words, and an empty text has none"
    yield Case("  the\tdog\nchased   the cat ", SMALL, why="there are two spaces, a tab and a line break")
    yield Case("", SMALL)


@token_ids.visible
def missing_word():
    "A word that is not in the vocabulary"
    yield Raises("the cat saw the dog", SMALL, naming="saw", why="saw is not in the vocabulary")
    yield Case("cat dog", SMALL)


@token_ids.hidden(weight=2)
def any_text(rng):
    "Any text and any vocabulary"
    for length in (6, 9, 1):
        ids = [int(i) for i in rng.permutation(400)[: len(WORDS)]]
        text = " ".join(WORDS[i] for i in rng.integers(len(WORDS), size=length))
        yield Case(text, dict(zip(WORDS, ids, strict=True)))
    yield Case("The dog. saw\n\n the  cat, and a\tdog", dict(zip(WORDS, range(100, 115), strict=True)))


@token_ids.hidden
def any_missing_word(rng):
    "A missing word, named in the error"
    vocabulary = {word: int(i) for word, i in zip(WORDS[:10], rng.permutation(40), strict=False)}
    word = str(rng.choice(["wombat", "quokka", "numbat"]))
    yield Raises(f"the {word} chased a bird", vocabulary, naming=word)
    yield Raises(f"{word.title()} saw the cat", vocabulary | {word: 99}, naming=word.title())
    yield Case(f"a {word} saw the cat", vocabulary | {word: 99})


@token_ids.misconception("lower case")
def lower_case(text, vocabulary):
    """You changed the words to lower case. The vocabulary here is looked up as the text stands: The and the are two
    words, each with an id of its own."""
    return [vocabulary[word] for word in text.lower().split()]


@token_ids.misconception("punctuation taken off")
def without_punctuation(text, vocabulary):
    """You took the punctuation off the words. Only white space separates words here, so dog. with its full stop is
    a word of its own. (Real tokenizers do split it off; then it is a token too.)"""
    return [vocabulary[word.strip(".,;:!?")] for word in text.split()]


@token_ids.misconception("split at single spaces")
def single_spaces(text, vocabulary):
    """You split at every single space. Two spaces in a row then give an empty word, and a tab or a line break
    separates nothing: `text.split()` with no argument splits at any run of white space."""
    return [vocabulary[word] for word in text.split(" ")]


@token_ids.misconception("missing words left out")
def unknown_dropped(text, vocabulary):
    """You left out the words that are not in the vocabulary. The sequence gets shorter and nobody hears of it:
    raise an error that names the word."""
    return [vocabulary[word] for word in text.split() if word in vocabulary]


@token_ids.misconception("a missing word gets id 0")
def unknown_zero(text, vocabulary):
    """You gave a missing word the id 0, which belongs to another word. Raise an error that names the missing one.
    (Tokenizers that go on have an id of its own for this, [UNK].)"""
    return [vocabulary.get(word, 0) for word in text.split()]


@token_ids.misconception("a missing word gets None")
def unknown_none(text, vocabulary):
    """`vocabulary.get(word)` answers None for a missing word, and None is no id. Raise an error that names the word."""
    return [vocabulary.get(word) for word in text.split()]


@token_ids.misconception("a missing word gets -1")
def unknown_minus_one(text, vocabulary):
    """You gave a missing word the id -1. NumPy would read the last row of the table for it: raise an error that names
    the word."""
    return [vocabulary.get(word, -1) for word in text.split()]


@token_ids.misconception("a missing word gets a new id")
def unknown_new(text, vocabulary):
    """You gave a missing word a new id, for which the model has no row. The vocabulary is fixed before training: raise
    an error that names the word."""
    return [vocabulary.get(word, len(vocabulary)) for word in text.split()]


@token_ids.misconception("the missing word is not named")
def unnamed(text, vocabulary):
    """You raise an error for a missing word, and do not say which one. Put the word into the message."""
    if any(word not in vocabulary for word in text.split()):
        raise ValueError("unknown word")
    return [vocabulary[word] for word in text.split()]


@token_ids.misconception("each word once")
def each_once(text, vocabulary):
    """You kept each word once. A sentence is a sequence: a word that comes twice is two tokens."""
    return [vocabulary[word] for word in dict.fromkeys(text.split())]


@token_ids.misconception("place in the vocabulary")
def place_in_vocabulary(text, vocabulary):
    """You returned the place of each word in the dictionary. Its id is the value stored under it."""
    return [list(vocabulary).index(word) for word in text.split()]


@token_ids.misconception("numbers of your own")
def own_numbers(text, vocabulary):
    """You numbered the words of the text as they come. The ids are given: the same word has the same id in every
    text, or row k of the table would mean another word each time."""
    known = {}
    return [known.setdefault(word, len(known)) for word in text.split() if word in vocabulary or vocabulary[word]]


@token_ids.misconception("sorted")
def sorted_ids(text, vocabulary):
    """You sorted the ids. Their order is the order of the words, and it is all that is left of it."""
    return sorted(chapter.token_ids(text, vocabulary))


@token_ids.misconception("the vocabulary searched for in the text")
def substrings(text, vocabulary):
    """You went through the vocabulary and asked which words occur in the text. Go through the text: order and
    repetitions count, and "a" occurs in "cat" as letters, not as a word."""
    return [i for word, i in vocabulary.items() if word in text]


@token_ids.misconception("characters")
def characters(text, vocabulary):
    """You went through the text letter by letter. Split it into words first."""
    return [vocabulary[letter] for letter in text]


# ------------------------------------------------------------------------------------------------- embed

embed = Exercise(chapter.embed, points=2, difficulty=1, minutes=10, section="A table with one row for each word")


@embed.where
def token_entry(index, ids, table):
    return f"the vector of id {np.asarray(ids)[index[0]]}"


@embed.visible
def rows():
    "Three tokens, one of them twice"
    yield Case([3, 0, 3], counting(5, 4), why="row k of the table belongs to id k")


@embed.visible
def square_table():
    "As many words as numbers in a vector"
    yield Case([1, 2, 2, 0], counting(4, 4), why="the table is square, so columns have the shape of rows")


@embed.visible
def first_and_last():
    "The first and the last id"
    yield Case([4, 0], counting(5, 3), why="ids go from 0 to V - 1")


@embed.visible
def out_of_range():
    "Ids that no row has"
    yield Raises([1, 5], counting(5, 3), why="the table has the rows 0 to 4")
    yield Raises([0, -1], counting(5, 3), why="no word has a negative id")
    yield Case([4, 1], counting(5, 3))


@embed.hidden(weight=2)
def any_ids(rng):
    "Any ids and any table"
    for V, d, T in ((9, 5, 7), (4, 8, 11), (30, 3, 1)):
        yield Case([int(i) for i in rng.integers(V, size=T)], rng.normal(size=(V, d)))
    yield Case(rng.integers(6, size=5), rng.normal(size=(6, 7)).astype(np.float32), why="the ids are an array")


@embed.hidden
def blind_shapes(rng):
    "Shapes in which a wrong axis goes unseen"
    yield Case([int(i) for i in rng.integers(6, size=6)], rng.normal(size=(6, 6)), why="T, V and d are equal")
    yield Case([int(i) for i in rng.permutation(5)], rng.normal(size=(5, 5)))


@embed.hidden
def any_out_of_range(rng):
    "Ids that are too large, or negative"
    V = int(rng.integers(4, 9))
    table = rng.normal(size=(V, 3))
    yield Raises([0, V], table)
    yield Raises([-V], table)
    yield Raises([1, 3 * V + 1, 0], table)
    yield Case([V - 1, 0], table)


def one_hot(ids, V):
    return (np.asarray(ids, dtype=int)[:, None] == np.arange(V)).astype(float)


@embed.misconception("negative ids count from the end")
def wraps(ids, table):
    """A negative id gave you a row from the end of the table: NumPy counts backwards. No word has a negative id, so
    it is a mistake from an earlier step; raise an error for it."""
    return table[np.asarray(ids, dtype=int)]


@embed.misconception("ids cut off at the last row")
def clipped(ids, table):
    """You moved ids that no row has to the nearest row. The model would read another word and say nothing: raise an
    error."""
    return np.take(table, np.asarray(ids, dtype=int), axis=0, mode="clip")


@embed.misconception("ids taken modulo the table")
def modulo(ids, table):
    """You took ids that no row has modulo the number of rows. The model would read another word and say nothing:
    raise an error."""
    return np.take(table, np.asarray(ids, dtype=int), axis=0, mode="wrap")


@embed.misconception("a zero vector for an unknown id")
def zero_rows(ids, table):
    """An id that no row has gave you a vector of zeros, which is what a one-hot row without a one does. Raise an
    error instead."""
    return one_hot(ids, len(table)) @ table


@embed.misconception("columns")
def columns(ids, table):
    """You took columns of the table. The table has one row for each word: index its first axis."""
    return chapter.embed(ids, table.T)


@embed.misconception("columns, kept upright")
def columns_upright(ids, table):
    """You indexed the second axis of the table. The table has one row for each word: index its first axis."""
    return table[:, np.asarray(ids, dtype=int)]


@embed.misconception("vectors in columns")
def transposed(ids, table):
    """Your vectors stand in columns. Tokens are rows here: the answer has one row for each id."""
    return chapter.embed(ids, table).T


@embed.misconception("counted from 1")
def one_based(ids, table):
    """You counted ids from 1. Id 0 is the first row of the table."""
    return table[np.asarray(ids, dtype=int) - 1]


@embed.misconception("one vector for the whole text")
def summed(ids, table):
    """You added the vectors up. Each token keeps a vector of its own; a sum would forget the order."""
    return chapter.embed(ids, table).sum(axis=0)


@embed.misconception("the mean of the vectors")
def averaged(ids, table):
    """You averaged the vectors. Each token keeps a vector of its own; a mean would forget the order."""
    rows = chapter.embed(ids, table)
    return rows.mean(axis=0) if len(rows) else np.zeros(table.shape[1])


@embed.misconception("each id once")
def unique_rows(ids, table):
    """You returned each row once, in the order of the table. A word that comes twice is two tokens, and the order is
    that of the ids."""
    return chapter.embed(np.unique(np.asarray(ids, dtype=int)), table)


@embed.misconception("the first rows of the table")
def first_rows(ids, table):
    """You took the first rows of the table, one for each token. The id says which row, not the place in the text.
    (A table of positions is read that way.)"""
    chapter.embed(ids, table)
    return table[: len(ids)]


@embed.misconception("one-hot rows")
def only_one_hot(ids, table):
    """You returned the one-hot rows. Multiply them with the table: the product is the lookup."""
    chapter.embed(ids, table)
    return one_hot(ids, len(table))


@embed.misconception("scaled by the root of d")
def scaled(ids, table):
    """You multiplied the vectors by the root of d, as the original Transformer does when it adds positions. A lookup
    leaves the rows as they are."""
    return chapter.embed(ids, table) * np.sqrt(table.shape[1])


@embed.misconception("id 0 as padding")
def padding_zero(ids, table):
    """You gave id 0 a vector of zeros, as an embedding layer with `padding_idx=0` does. Here id 0 is a word like any
    other."""
    return chapter.embed(ids, table) * (np.asarray(ids, dtype=int) != 0)[:, None]


# ------------------------------------------------------------------------------------- patch_token_count

patch_token_count = Exercise(
    chapter.patch_token_count, points=2, difficulty=1, minutes=10, section="When the image does not divide"
)


@patch_token_count.visible
def base_model():
    "An image that divides, with and without prefix tokens"
    yield Case(224, 224, 16, why="this is ViT-B/16: 14 times 14 patches and a class token")
    yield Case(64, 96, 16, 0)
    yield Case(64, 96, 16, n_prefix=5)


@patch_token_count.visible
def leftovers():
    "Pixels that fill no patch"
    yield Case(384, 384, 14, why="27 patches fit into 384 pixels, and 6 pixels are left over")
    yield Case(384, 384, 14, mode="pad", why="the 28th patch is partly empty")
    yield Case(50, 70, 16, 1, "crop")
    yield Case(50, 70, 16, 1, "pad")


@patch_token_count.visible
def padding_what_divides():
    "Nothing to pad, and everything to pad"
    yield Case(48, 80, 16, 1, "pad", why="both sides divide, so there is nothing to pad")
    yield Case(5, 40, 16, 1, "pad", why="a padded image may be smaller than a patch")


@patch_token_count.visible
def senseless():
    "Sizes and modes that make no sense"
    yield Raises(0, 224, 16, why="an image has a height")
    yield Raises(224, 224, 0, why="a patch has a side")
    yield Raises(224, 224, 16, mode="stretch", why="there is no such mode")
    yield Raises(10, 224, 16, why="10 pixels hold no whole patch of side 16")
    yield Case(16, 16, 16, why="one whole patch just fits")


@patch_token_count.hidden(weight=2)
def any_crop(rng):
    "Any image, cropped"
    for _ in range(4):
        H, W, P = (int(n) for n in rng.integers((40, 90, 7), (80, 150, 17)))
        yield Case(H, W, P, int(rng.integers(0, 6)))
    P = int(rng.integers(5, 20))
    yield Case(4 * P - 1, 7 * P - 2, P, int(rng.integers(0, 4)), why="one pixel short of a whole patch")
    yield Case(1, 1, 1, 0, why="a single pixel can be a patch")


@patch_token_count.hidden(weight=2)
def any_pad(rng):
    "Any image, padded"
    for _ in range(4):
        H, W, P = (int(n) for n in rng.integers((40, 90, 7), (80, 150, 17)))
        yield Case(H, W, P, int(rng.integers(0, 6)), "pad")
    P = int(rng.integers(5, 20))
    yield Case(3 * P, 5 * P + 1, P, mode="pad", why="one side divides, the other has one pixel more")


@patch_token_count.hidden
def any_senseless(rng):
    "What must raise"
    P = int(rng.integers(8, 20))
    yield Raises(-3 * P, 4 * P, P)
    yield Raises(4 * P, 0, P, mode="pad")
    yield Raises(4 * P, 4 * P, -P)
    yield Raises(4 * P, P - 1, P, 4)
    yield Raises(4 * P, 4 * P, P, mode="resize")
    yield Case(2 * P, P, P, 4)


def fits(H, W, P, n_prefix, mode):
    """What must raise does, also in the misconceptions that are about something else."""
    chapter.patch_token_count(H, W, P, n_prefix, mode)


@patch_token_count.misconception("area over area")
def area(H, W, P, n_prefix=1, mode="crop"):
    """You divided the area of the image by the area of a patch. Leftover pixels of different rows do not make up a
    patch: round each side for itself, then multiply."""
    fits(H, W, P, n_prefix, mode)
    return (H * W // P**2 if mode == "crop" else -(-H * W // P**2)) + n_prefix


@patch_token_count.misconception("rounded to the nearest")
def rounded(H, W, P, n_prefix=1, mode="crop"):
    """You rounded to the nearest whole number of patches. A cropped image drops every patch that is not whole, a
    padded one keeps every one that is begun."""
    fits(H, W, P, n_prefix, mode)
    return round(H / P) * round(W / P) + n_prefix


@patch_token_count.misconception("one more patch even where nothing is left over")
def always_one_more(H, W, P, n_prefix=1, mode="crop"):
    """You pad by adding one patch to each side. Where P divides the side, there is nothing to pad: round up, which
    leaves whole numbers alone."""
    fits(H, W, P, n_prefix, mode)
    return (H // P + 1) * (W // P + 1) + n_prefix if mode == "pad" else H // P * (W // P) + n_prefix


@patch_token_count.misconception("a square image")
def square(H, W, P, n_prefix=1, mode="crop"):
    """You squared the number of rows, as if every image were square. Count the columns from W."""
    fits(H, W, P, n_prefix, mode)
    return chapter.patch_token_count(H, H, P, n_prefix, mode)


@patch_token_count.misconception("prefix tokens left out")
def no_prefix(H, W, P, n_prefix=1, mode="crop"):
    """You counted the patches only. The Transformer also reads the prefix tokens: add `n_prefix`."""
    return chapter.patch_token_count(H, W, P, 0, mode)


@patch_token_count.misconception("always one prefix token")
def one_prefix(H, W, P, n_prefix=1, mode="crop"):
    """You added 1 for the class token. A model may have none, or registers beside it: add `n_prefix`."""
    return chapter.patch_token_count(H, W, P, 1, mode)


@patch_token_count.misconception("always cropped")
def always_crop(H, W, P, n_prefix=1, mode="crop"):
    """You crop in both modes. With mode "pad" a patch that is begun counts: round up."""
    if mode not in ("crop", "pad"):
        raise ValueError(mode)
    return chapter.patch_token_count(H, W, P, n_prefix)


@patch_token_count.misconception("always padded")
def always_pad(H, W, P, n_prefix=1, mode="crop"):
    """You pad in both modes. With mode "crop" a patch that is not whole is dropped: round down."""
    fits(H, W, P, n_prefix, mode)
    return chapter.patch_token_count(H, W, P, n_prefix, "pad")


@patch_token_count.misconception("modes exchanged")
def exchanged(H, W, P, n_prefix=1, mode="crop"):
    """You exchanged the two modes. Cropping drops what is not whole and rounds down, padding rounds up."""
    fits(H, W, P, n_prefix, mode)
    other = "pad" if mode == "crop" else "crop"
    return chapter.patch_token_count(H, W, P, n_prefix, other)


@patch_token_count.misconception("only the height padded")
def one_side(H, W, P, n_prefix=1, mode="crop"):
    """You padded one side only. Both sides are rounded up."""
    fits(H, W, P, n_prefix, mode)
    return (-(-H // P) if mode == "pad" else H // P) * (W // P) + n_prefix


@patch_token_count.misconception("windows that overlap")
def stride_one(H, W, P, n_prefix=1, mode="crop"):
    """You counted windows that move one pixel at a time. Patches do not overlap: the stride is P."""
    fits(H, W, P, n_prefix, mode)
    return (H - P + 1) * (W - P + 1) + n_prefix


@patch_token_count.misconception("not an integer")
def floats(H, W, P, n_prefix=1, mode="crop"):
    """Your count is a float. `np.floor`, `np.ceil` and `/` return floats: count with `//`, or turn the result into
    an int. An array cannot have 197.0 rows."""
    return float(chapter.patch_token_count(H, W, P, n_prefix, mode))


@patch_token_count.misconception("any other mode pads")
def mode_not_checked(H, W, P, n_prefix=1, mode="crop"):
    """A mode that does not exist does the same as one that does. A typing mistake would go unseen: raise an error."""
    return chapter.patch_token_count(H, W, P, n_prefix, "crop" if mode == "crop" else "pad")


@patch_token_count.misconception("no error for an image without a patch")
def silent_when_small(H, W, P, n_prefix=1, mode="crop"):
    """A cropped image that holds no whole patch gives you a count of prefix tokens alone. The model would describe
    an image that it has not seen: raise an error."""
    chapter.patch_token_count(max(H, P), max(W, P), P, n_prefix, mode)  # an unknown mode and P < 1 still raise
    if H < 1 or W < 1:
        raise ValueError("sizes must be positive")
    return n_prefix if mode == "crop" and min(H, W) < P else chapter.patch_token_count(H, W, P, n_prefix, mode)


@patch_token_count.misconception("sizes not checked")
def sizes_not_checked(H, W, P, n_prefix=1, mode="crop"):
    """A size of zero or less gives you a number of tokens. There is no such image: raise an error."""
    if mode not in ("crop", "pad"):
        raise ValueError(mode)
    if P and mode == "crop" and (0 < H < P or 0 < W < P):
        raise ValueError("no whole patch")
    return (H // P * (W // P) if mode == "crop" else -(-H // P) * -(-W // P)) + n_prefix if P else n_prefix


# --------------------------------------------------------------------------------- attention_score_bytes

attention_score_bytes = Exercise(
    chapter.attention_score_bytes, points=1, difficulty=1, minutes=5, section="Why not one token for each pixel"
)


@attention_score_bytes.visible
def one_head():
    "One head, scores of two bytes"
    yield Case(10, why="10 tokens make 10 times 10 scores of two bytes")
    yield Case(197, why="ViT-B/16 reads 197 tokens")


@attention_score_bytes.visible
def several_heads():
    "Several heads, and wider scores"
    yield Case(10, 12, why="each of the 12 heads has 100 scores of its own")
    yield Case(10, 3, 4, why="the third argument is the bytes of one score")
    yield Case(7, n_heads=2, bytes_per_score=8)


@attention_score_bytes.visible
def pixels():
    "One token for each pixel"
    yield Case(50_176, why="this is an image of 224 by 224 pixels")


@attention_score_bytes.hidden(weight=2)
def any_model(rng):
    "Any number of tokens and heads, any width"
    for width in (1, 2, 4):
        yield Case(int(rng.integers(20, 3000)), int(rng.integers(2, 25)), width)


@attention_score_bytes.hidden
def very_long(rng):
    "Very many tokens"
    yield Case(int(rng.integers(70_000, 400_000)), int(rng.integers(2, 17)), 4)


@attention_score_bytes.misconception("not squared")
def linear(T, n_heads=1, bytes_per_score=2):
    """You counted one score for each token. Each token is compared with every token: T times T scores."""
    return n_heads * T * bytes_per_score


@attention_score_bytes.misconception("each pair once")
def triangle(T, n_heads=1, bytes_per_score=2):
    """You counted each pair once. The score of query a with key b is not that of query b with key a, and a ViT has no
    causal mask: T times T scores."""
    return n_heads * T * (T + 1) // 2 * bytes_per_score


@attention_score_bytes.misconception("without the token itself")
def without_diagonal(T, n_heads=1, bytes_per_score=2):
    """You left out the score of each token with itself. It is computed like the others: T times T scores."""
    return n_heads * T * (T - 1) * bytes_per_score


@attention_score_bytes.misconception("one head only")
def heads_ignored(T, n_heads=1, bytes_per_score=2):
    """You counted one head. Every head has a score matrix of its own."""
    return T**2 * bytes_per_score


@attention_score_bytes.misconception("scores divided among the heads")
def heads_share(T, n_heads=1, bytes_per_score=2):
    """You divided by the number of heads. The heads divide the width of a token among them, not the scores: each
    computes all T times T of them."""
    return T**2 * bytes_per_score // n_heads


@attention_score_bytes.misconception("heads squared")
def heads_squared(T, n_heads=1, bytes_per_score=2):
    """You squared the heads too. Heads are not compared with one another: only T is squared."""
    return (n_heads * T) ** 2 * bytes_per_score


@attention_score_bytes.misconception("bits")
def bits(T, n_heads=1, bytes_per_score=2):
    """You counted bits. The third argument is bytes for each score already."""
    return 8 * n_heads * T**2 * bytes_per_score


@attention_score_bytes.misconception("scores, not bytes")
def count_only(T, n_heads=1, bytes_per_score=2):
    """You counted the scores. Multiply by the bytes of each."""
    return n_heads * T**2


@attention_score_bytes.misconception("always two bytes")
def two_bytes(T, n_heads=1, bytes_per_score=2):
    """You took two bytes for each score whatever was asked. float32 takes four: use `bytes_per_score`."""
    return n_heads * T**2 * 2


@attention_score_bytes.misconception("gigabytes")
def gigabytes(T, n_heads=1, bytes_per_score=2):
    """Your answer is in gigabytes. Return whole bytes; convert where you print."""
    return n_heads * T**2 * bytes_per_score / 1e9


@attention_score_bytes.misconception("a prefix token added")
def one_more_token(T, n_heads=1, bytes_per_score=2):
    """You added a class token. T is the length of the whole sequence, prefix tokens included."""
    return n_heads * (T + 1) ** 2 * bytes_per_score


@attention_score_bytes.misconception("integers of 32 bits")
def overflow(T, n_heads=1, bytes_per_score=2):
    """Your product ran over 32 bits and started again from the other end. Use Python's integers, which have no
    limit, or 64 bits."""
    return int(np.prod([n_heads, T, T, bytes_per_score], dtype=np.int32))
