// Resizing along one axis, as the chapter on resolution defines it: half-pixel centres, clamped, no antialiasing.

export const CONVENTIONS = ["half-pixel", "corner-aligned", "asymmetric"];

/**
 * The old coordinates that the new cells of one axis read, before clamping.
 *
 * @param {number} n - old cells
 * @param {number} nNew - new cells
 * @param {string} convention - one of CONVENTIONS
 * @returns {number[]} of length nNew
 */
export function coordinates(n, nNew, convention = CONVENTIONS[0]) {
  const read = {
    "half-pixel": (i) => ((i + 0.5) * n) / nNew - 0.5,
    "corner-aligned": (i) => (nNew === 1 ? 0 : (i * (n - 1)) / (nNew - 1)),
    asymmetric: (i) => (i * n) / nNew,
  }[convention];
  return Array.from({ length: nNew }, (_, i) => read(i));
}

/** The coordinate moved to the nearer end where it is outside [0, n - 1]. */
export const clamp = (s, n) => Math.min(Math.max(s, 0), n - 1);

/** The matrix A of one axis, nNew rows of n weights: a resized square is A X Aᵀ. */
export function axisMatrix(n, nNew) {
  return coordinates(n, nNew).map((place) => {
    const [s, row] = [clamp(place, n), new Array(n).fill(0)];
    const [low, t] = [Math.floor(s), s % 1];
    row[low] += 1 - t;
    if (t) row[low + 1] += t;
    return row;
  });
}

export const transpose = (M) => M[0].map((_, j) => M.map((row) => row[j]));
export const multiply = (L, R) => L.map((row) => R[0].map((_, j) => row.reduce((sum, x, k) => sum + x * R[k][j], 0)));

/** Solve S X = R for a symmetric positive definite S, by elimination. */
function solve(S, R) {
  const rows = S.map((row, i) => [...row, ...R[i]]);
  const n = S.length;
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < n; k++) {
      const factor = k === i ? 0 : rows[k][i] / rows[i][i];
      if (factor) for (let j = i; j < rows[k].length; j++) rows[k][j] -= factor * rows[i][j];
    }
  }
  return rows.map((row, i) => row.slice(n).map((x) => x / row[i]));
}

/**
 * The pseudoinverse of Aᵀ for the A of `axisMatrix`, nNew rows of n. It has full rank, so one of its two Gram
 * matrices can be inverted.
 */
export function pseudoinverse(n, nNew) {
  const A = axisMatrix(n, nNew);
  if (nNew < n) return solve(multiply(A, transpose(A)), A);
  return transpose(solve(multiply(transpose(A), A), transpose(A)));
}

/** L X Lᵀ for a square X in reading order; returns reading order. */
export function bothAxes(L, flat) {
  const n = Math.sqrt(flat.length);
  const X = Array.from({ length: n }, (_, i) => Array.from(flat.slice(i * n, i * n + n)));
  return multiply(multiply(L, X), transpose(L)).flat();
}
