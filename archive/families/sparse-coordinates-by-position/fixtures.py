# The published boundaries.
check(
    "values are added by coordinate, in whatever order they come",
    solve([("a", [(2, N), (0, 1)]), ("b", [(0, 3), (2, 4)])]),
    [[0, 4], [2, N + 4]],
)
check("no rows give an empty list", solve([]), [])
check("a worker with an empty list adds nothing", solve([("a", [])]), [])
check("one pair is its own sum", solve([("a", [(N, N)])]), [[N, N]])
check(
    "a coordinate that cancels to zero stays",
    solve([("a", [(-1, N)]), ("b", [(-1, -N)])]),
    [[-1, 0]],
)
check(
    "coordinates that nobody shares stay apart",
    solve([("a", [(1, 2)]), ("b", [(3, 4)])]),
    [[1, 2], [3, 4]],
)

# What is added.
check(
    "a coordinate twice in one list is added",
    solve([("a", [(N, 1), (N, 20)]), ("b", [(N, 300)])]),
    [[N, 321]],
)
check(
    "equal pairs in one list are both added", solve([("a", [(3, N), (3, N), (3, N)])]), [[3, 3 * N]]
)
check(
    "a coordinate that comes back later is still added",
    solve([("a", [(2, N), (1, 10), (2, 100)]), ("b", [(1, 5), (2, 1000)])]),
    [[1, 15], [2, N + 1100]],
)
check(
    "equal lists of two workers are both added",
    solve([("a", [(1, N), (4, 2)]), ("b", [(1, N), (4, 2)])]),
    [[1, 2 * N], [4, 4]],
)
check(
    "every row of a worker is added",
    solve([("a", [(1, N)]), ("b", [(1, 10)]), ("a", [(1, 100), (2, 5)])]),
    [[1, N + 110], [2, 5]],
)
check(
    "a row sent twice by one worker is added twice",
    solve([("a", [(1, N), (2, 3)]), ("a", [(1, N), (2, 3)]), ("b", [(1, 10)])]),
    [[1, 2 * N + 10], [2, 6]],
)
check(
    "a later row of the same coordinates does not replace",
    solve([("a", [(1, N), (2, 3)]), ("b", [(1, 10)]), ("a", [(1, 100), (2, 40)])]),
    [[1, N + 110], [2, 43]],
)
check(
    "a pair that a worker sends again is added again",
    solve([("a", [(1, N), (2, 3)]), ("b", [(1, N)]), ("a", [(4, 5), (1, N)])]),
    [[1, 3 * N], [2, 3], [4, 5]],
)
check(
    "pairs of one list that cancel leave a zero",
    solve([("a", [(3, N), (4, 0.5), (3, -N), (4, -0.5)]), ("b", [(5, 1)])]),
    [[3, 0], [4, 0.0], [5, 1]],
)
named = [(1, [(6, 1)]), ("1", [(6, 10)]), (0, [(6, 100)]), ("", [(6, 1000 * N)]), (-1, [(6, 7)])]
check("lists count whatever their workers are named", solve(named), [[6, 1000 * N + 118]])
check(
    "lists after an empty one are added",
    solve([("a", [(5, N)]), ("b", []), ("c", [(5, 10), (8, 3)])]),
    [[5, N + 10], [8, 3]],
)
check(
    "negative values are added with their sign",
    solve([("a", [(4, -N), (5, 3)]), ("b", [(4, -2), (5, -3 - N)])]),
    [[4, -2 - N], [5, -N]],
)
check(
    "a coordinate that was sent zero is present",
    solve([("a", [(7, 0), (N + 7, 0.0)])]),
    [[7, 0], [N + 7, 0.0]],
)
crowd = [(i, [(i, N), (50 - i, 1)]) for i in range(51)]
check("every one of many lists is added", solve(crowd), [[i, N + 1] for i in range(51)])
check(
    "every one of seventy lists is added",
    solve([(i, [(i, 2), (1200, N)]) for i in range(70)]),
    [[i, 2] for i in range(70)] + [[1200, 70 * N]],
)
check(
    "every one of many pairs in one list is added",
    solve([("a", [(i % 2, N) for i in range(110)])]),
    [[0, 55 * N], [1, 55 * N]],
)

# What a coordinate is.
mixed = [
    ("a", [(100, 1), (-12, 2), (9, 3)]),
    ("b", [(10, N), (-2, 5), (0, 6)]),
    ("c", [(-110, 7), (1, 8)]),
]
check(
    "coordinates come out in order of their numbers",
    solve(mixed),
    [[-110, 7], [-12, 2], [-2, 5], [0, 6], [1, 8], [9, 3], [10, N], [100, 1]],
)
check(
    "a negative coordinate is an ordinary one",
    solve([("a", [(-1, 1), (1, N), (-2, 20)]), ("b", [(-1, 300)])]),
    [[-2, 20], [-1, 301], [1, N]],
)
check(
    "coordinates of one hash stay apart",
    solve([("a", [(2**61 - 1, N), (0, 20)]), ("b", [(-1, 300), (-2, 4000)])]),
    [[-2, 4000], [-1, 300], [0, 20], [2**61 - 1, N]],
)
check(
    "coordinates beyond 2**15 stay as they are",
    solve([("a", [(2**15 + N, 1), (N, 20), (2**16 + N, 300)])]),
    [[N, 20], [2**15 + N, 1], [2**16 + N, 300]],
)
check(
    "coordinates beyond 2**24 are told apart",
    solve([("a", [(2**24 + 4 * N + 1, 1)]), ("b", [(2**24 + 4 * N, 20)])]),
    [[2**24 + 4 * N, 20], [2**24 + 4 * N + 1, 1]],
)
close = [("a", [(2**53 + 4 * N + 1, 1), (2**53 + 4 * N, 20)]), ("b", [(2**53 + 4 * N + 1, 300)])]
check(
    "coordinates beyond 2**53 are told apart and sorted",
    solve(close),
    [[2**53 + 4 * N, 20], [2**53 + 4 * N + 1, 301]],
)
check(
    "coordinates 2**64 apart are told apart",
    solve([("a", [(N, 1)]), ("b", [(2**64 + N, 20), (-(2**64) + N, 300)])]),
    [[N - 2**64, 300], [N, 1], [2**64 + N, 20]],
)
remote = [
    ("a", [(2**1100, 1), (2**200 + N, 2), (N, 3)]),
    ("b", [(-(2**1100), 4), (2**200 + N - 1, 5), (-(2**53) - 1, 6), (-(2**53), 7)]),
]
check(
    "coordinates beyond 2**128 and every float are told apart and sorted",
    solve(remote),
    [
        [-(2**1100), 4],
        [-(2**53) - 1, 6],
        [-(2**53), 7],
        [N, 3],
        [2**200 + N - 1, 5],
        [2**200 + N, 2],
        [2**1100, 1],
    ],
)
check(
    "coordinates that are equal are the same coordinate",
    solve([("a", [(1000 + N, 1)]), ("b", [(999 + N + 1, N)])]),
    [[1000 + N, N + 1]],
)

# What kind of number comes out.
check(
    "an int and floats give an exact float",
    solve([("a", [(1, N), (2, 3)]), ("b", [(1, 0.125), (1, 0.25)])]),
    [[1, 0.375 + N], [2, 3]],
)
check(
    "whole floats give a float, at their coordinate only",
    solve([("a", [(1, 0.5), (2, N)]), ("b", [(1, N + 0.5), (2, 1)])]),
    [[1, N + 1.0], [2, N + 1]],
)
check(
    "floats that cancel give 0.0, and a float after it",
    solve([("a", [(1, N + 0.5), (2, 1.5)]), ("b", [(1, -0.5 - N), (2, -1.5)]), ("c", [(2, N)])]),
    [[1, 0.0], [2, N + 0.0]],
)
check(
    "large ints stay exact",
    solve([("a", [(1, 2**53), (2, 2**64)]), ("b", [(1, N), (2, -1)]), ("c", [(1, 2)])]),
    [[1, 2**53 + N + 2], [2, 2**64 - 1]],
)
check(
    "ints beyond 2**128 and beyond every float stay exact",
    solve([("a", [(1, 2**200), (2, 2**1100)]), ("b", [(1, N), (2, N), (1, -(2**190))])]),
    [[1, 2**200 - 2**190 + N], [2, 2**1100 + N]],
)
check(
    "an eighth next to a large float is kept",
    solve([("a", [(1, 2**29 + 0.125)]), ("b", [(1, N + 0.25), (1, 2**29 - 0.5)])]),
    [[1, 2**30 + N - 0.125]],
)

# What a call leaves behind.
kept = [["a", [[2, N], [0, 1], [2, 10]]], ["b", [[0, 3]]]]
check(
    "the caller's rows are left as they were",
    [solve(kept), kept],
    [[[0, 4], [2, N + 10]], [["a", [[2, N], [0, 1], [2, 10]]], ["b", [[0, 3]]]]],
)
check(
    "a call does not remember the one before",
    [solve([("a", [(1, N)])]), solve([("a", [(1, 2)])]), solve([])],
    [[[1, N]], [[1, 2]], []],
)
check(
    "rows and pairs may be lists or tuples",
    solve((["a", ((1, N), [2, 3])], ("b", [[1, 10], (2, 20)]))),
    [[1, N + 10], [2, 23]],
)
