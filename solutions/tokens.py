# %% [markdown]
# # Tokens
#
# The exercises of the chapter *Tokens*. You turn a sentence into ids and the ids into vectors, count the tokens
# that an image becomes, and the memory that attention needs to compare them. $T$ is the number of tokens, $d$ the
# width of a token, $V$ the number of words in the vocabulary, $P$ the patch side in pixels.
#
# Fill in each function, run its cell, then run the check under it. A check that fails says what it called,
# what should have come back and what did.

# %%
import numpy as np

# %% [markdown]
# ## From words to ids
#
# Write `token_ids`. It splits a text at white space and looks each piece up in a vocabulary, a dictionary from
# word to id. A piece is looked up as it stands: `The` and `the` are two words, and so are `dog` and `dog.`. An
# empty text has no tokens. If a word is not in the vocabulary, raise an error that names the word, so that
# whoever reads it knows what to add.
#
# Hint: `text.split()` with no argument splits at any run of spaces, tabs and line breaks, and gives `[]` for an
# empty text. `text.split(" ")` does neither.
#
# Hint: `vocabulary.get(word)` answers `None` for a word that is missing. You want the opposite of silence.


# %%
def token_ids(text, vocabulary):
    """Turn a text into the ids of its words.

    Parameters
    ----------
    text : str
        Words separated by white space.
    vocabulary : dict of str to int
        The id of each known word. It is not changed.

    Returns
    -------
    list of int
        One id for each word, in the order of the text; [] for an empty text.

    Raises
    ------
    ValueError
        If a word is not in the vocabulary; the message names it.
    """
    ### BEGIN SOLUTION
    ids = []
    for word in text.split():
        if word not in vocabulary:
            raise ValueError(f"text: the word {word!r} is not in the vocabulary")
        ids.append(vocabulary[word])
    return ids
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(token_ids)
# ### BEGIN HIDDEN TESTS
# check(token_ids, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## From ids to vectors
#
# Write `embed`. The embedding table has one row of $d$ numbers for each word of the vocabulary, and id $k$ stands
# for row $k$. Return the rows that the ids name, in their order. Ids come as a list or as an array.
#
# An id that no row has is a mistake somewhere before you, and should raise an error. That holds for negative ids
# too, which NumPy would take as counting from the end.
#
# Hint: NumPy takes an array of row numbers as an index: `table[[2, 0, 2]]` is three rows.
#
# Hint: The same rows come out of a product. A matrix with one row for each token, all zeros but for a one in the
# column of the id, picks rows when it multiplies the table from the left.
#
# Hint: Check the smallest and the largest id against 0 and the number of rows before you index.


# %%
def embed(ids, table):
    """Look up the embedding vectors of token ids.

    Parameters
    ----------
    ids : sequence of int, length T
        Row numbers, each from 0 to V - 1. They are not changed.
    table : array, shape (V, d)
        The embedding table, one row for each word. It is not changed.

    Returns
    -------
    array, shape (T, d)
        Row t is row ids[t] of the table, in the dtype of `table`.

    Raises
    ------
    ValueError
        If an id is negative or not below V.

    Notes
    -----
    Equal to the product of the ids' one-hot matrix, shape (T, V), with the table.
    """
    ### BEGIN SOLUTION
    ids, table = np.asarray(ids), np.asarray(table)
    if ids.size == 0:
        ids = ids.astype(int)  # NumPy makes an empty list an array of floats
    if table.ndim != 2:
        raise ValueError(f"table must have shape (V, d), not {table.shape}")
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        found = f"{ids.dtype} of shape {ids.shape}"
        raise ValueError(f"ids must be a list of integers, not {found}")
    unknown = ids[(ids < 0) | (ids >= len(table))]
    if unknown.size:
        last = len(table) - 1
        raise ValueError(f"ids must be from 0 to {last}, not {unknown[0]}")
    return table[ids]  # (V, d) -> (T, d)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(embed)
# ### BEGIN HIDDEN TESTS
# check(embed, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## How many tokens an image becomes
#
# Write `patch_token_count`: the length of the sequence that a Vision Transformer reads for an image of $H$ by $W$
# pixels. With `mode="crop"` pixels that do not fill a patch are dropped, as a strided convolution drops them.
# With `mode="pad"` the image is enlarged to whole patches first. To the patches come `n_prefix` tokens that are
# not patches, such as the class token; there may be none.
#
# Raise an error for sizes that are not positive, for a mode that is neither, and for an image that holds no whole
# patch once it is cropped.
#
# Hint: Rows and columns of patches are counted each for themselves. The area divided by the area of a patch is
# not the number of whole patches.
#
# Hint: `//` rounds down. To round up with integers, `-(-H // P)` rounds down on the negative side.


# %%
def patch_token_count(H, W, P, n_prefix=1, mode="crop"):
    """Count the tokens that a Vision Transformer reads for one image.

    Parameters
    ----------
    H, W : int
        Height and width of the image in pixels.
    P : int
        Patch side in pixels.
    n_prefix : int
        Tokens that are not patches: the class token and any registers.
    mode : {"crop", "pad"}
        Drop the pixels that do not fill a patch, or pad up to whole patches.

    Returns
    -------
    int
        H_p * W_p + n_prefix.

    Raises
    ------
    ValueError
        If a size is not positive, the mode is unknown, or a cropped image holds no
        whole patch.

    Notes
    -----
    A convolution with kernel and stride P and no padding gives
    floor((H - P) / P) + 1 = floor(H / P) rows.
    """
    ### BEGIN SOLUTION
    sizes = (("H", H, 1), ("W", W, 1), ("P", P, 1), ("n_prefix", n_prefix, 0))
    for name, size, least in sizes:
        if not isinstance(size, (int, np.integer)) or size < least:
            raise ValueError(f"{name} must be an integer >= {least}, not {size!r}")
    H, W, P = int(H), int(W), int(P)  # NumPy's unsigned integers have no negative
    if mode == "crop":
        H_p, W_p = H // P, W // P
    elif mode == "pad":
        H_p, W_p = -(-H // P), -(-W // P)  # rounded up
    else:
        raise ValueError(f'mode must be "crop" or "pad", not {mode!r}')
    if H_p == 0 or W_p == 0:
        raise ValueError(f"H = {H}, W = {W} leave no whole patch of side P = {P}")
    return H_p * W_p + int(n_prefix)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(patch_token_count)
# ### BEGIN HIDDEN TESTS
# check(patch_token_count, hidden=True)
# ### END HIDDEN TESTS

# %% [markdown]
# ## The memory of the attention scores
#
# Write `attention_score_bytes`: how many bytes one layer's attention scores take for one image, if they are
# stored. Every head compares every token with every token, itself included.
#
# Hint: How many pairs of a query and a key does one head have? Does that number depend on the number of heads?


# %%
def attention_score_bytes(T, n_heads=1, bytes_per_score=2):
    """Count the bytes of one layer's attention scores for one image.

    Parameters
    ----------
    T : int
        Number of tokens.
    n_heads : int
        Number of attention heads.
    bytes_per_score : int
        Bytes of one number: 2 for bfloat16 and float16, 4 for float32.

    Returns
    -------
    int
        n_heads * T**2 * bytes_per_score.

    Raises
    ------
    ValueError
        If an argument is not a positive integer.
    """
    ### BEGIN SOLUTION
    sizes = {"T": T, "n_heads": n_heads, "bytes_per_score": bytes_per_score}
    for name, size in sizes.items():
        if not isinstance(size, (int, np.integer)) or size < 1:
            raise ValueError(f"{name} must be a positive integer, not {size!r}")
    # Python's integers have no limit; NumPy's of 32 bits would overflow.
    return int(n_heads) * int(T) ** 2 * int(bytes_per_score)
    ### END SOLUTION


# %% tags=["active-ipynb"]
# check(attention_score_bytes)
# ### BEGIN HIDDEN TESTS
# check(attention_score_bytes, hidden=True)
# ### END HIDDEN TESTS
