# The published boundaries.
check(
    "the last row of each worker counts",
    solve([[N, "a", N], [N, "a", 3 * N], [N, "b", 2 * N]], N),
    5 * N,
)
check("no rows give zero", solve([], N), 0)
check("a row of a later step does not contribute", solve([[N + 1, "a", 9 * N]], N), 0)
check("a row of an earlier step does not contribute", solve([[N - 1, "a", 100], [N, "a", N]], N), N)
check("one row is its own sum", solve([[N, "a", 4]], N), 4)
check("a last value of zero counts", solve([[N, "a", N], [N, "a", 0]], N), 0)
check(
    "a late row of an earlier step does not replace",
    solve([[N, "a", N], [N - 1, "a", 50 * N]], N),
    N,
)

# Which row of a worker counts.
interleaved = [[N, "a", 1], [N, "b", 10], [N, "a", 200], [N, "b", 3000], [N, "a", 40000 * N]]
check("the last of three interleaved copies counts", solve(interleaved, N), 40000 * N + 3000)
check(
    "a value sent before may be the last one again",
    solve([[N, "a", 5], [N, "a", 7], [N, "a", 5], [N, "b", N]], N),
    N + 5,
)
check(
    "a smaller or negative correction counts",
    solve([[N, "a", 5], [N, "b", N], [N, "a", -3], [N, "b", -4 * N]], N),
    -3 - 4 * N,
)
check(
    "a row of a later step neither replaces nor ends the step",
    solve([[N, "a", 1], [N + 1, "a", 70], [N, "b", 2 * N], [N + 1, "b", 80]], N),
    2 * N + 1,
)
check(
    "a worker without a row at the step adds nothing",
    solve([[N, "a", 3], [N - 1, "b", 5], [N + 1, "c", 9]], N),
    3,
)
crowd = [[N, str(i), 2**i] for i in range(40)]
check(
    "every one of many workers counts once",
    solve([[N, str(i), 7] for i in range(40)] + crowd, N),
    2**40 - 1,
)
check(
    "a worker is known again after 69 others",
    solve([[N, i, 7] for i in range(70)] + [[N, i, i + N] for i in range(70)], N),
    70 * N + 2415,
)
check(
    "the tenth copy of a row still replaces",
    solve([[N, "a", i] for i in range(9)] + [[N, "b", 1], [N, "a", 70 * N]], N),
    70 * N + 1,
)
check(
    "the first of many rows counts",
    solve([[N, "a", N]] + [[N, i % 9, i] for i in range(110)], N),
    N + 945,
)
check(
    "a step goes on after many others",
    solve(
        [[N, "a", N], [N, "b", 20]] + [[N + 1 + i, "a", 3] for i in range(40)] + [[N, "b", 7]], N
    ),
    N + 7,
)

# Who a worker is.
check(
    "equal values of several workers all count",
    solve([[N, "a", N], [N, "b", N], [N, "a", N], [N, "c", N]], N),
    3 * N,
)
alike = [[N, 1, 1], [N, "1", 10], [N, "01", 100], [N, 257, 1000], [N, 2**64 + 1, 10000 * N]]
check("a number and its texts are different workers", solve(alike, N), 10000 * N + 1111)
unnamed = [
    [N, "", 1],
    [N, 0, 10],
    [N, "0", 100],
    [N, 2**61 - 1, 1000 * N],
    [N, -1, 10000],
    [N, -2, 100000],
]
check("empty, zero and negative names are workers", solve(unnamed, N), 1000 * N + 110111)
sooner = [[N, "", 5], [N, 0, 5], [N, -1, 5], [N, -2, 5]]
check(
    "a resend under an empty, zero or negative name replaces",
    solve(sooner + unnamed, N),
    1000 * N + 110111,
)
opposite = [[N, 1, 1], [N, -1, 10], [N, -300, 100], [N, 300, 1000 * N]]
check("numbers of opposite sign are different workers", solve(opposite, N), 1000 * N + 111)
far = [
    [N, 2**53, 1],
    [N, 2**53 + 1, 10],
    [N, 2**200 + 1, 100],
    [N, 2**200, 1000 * N],
    [N, 0, 10000],
    [N, 1, 100000],
]
check("numbers are told apart beyond 2**53 and 2**128", solve(far, N), 1000 * N + 110111)
spelled = [
    [N, "replica-1", 1],
    [N, "replica-2", 10],
    [N, "Replica-1", 100],
    [N, "replica-1 ", 1000 * N],
]
check("names count to the last letter, case and space", solve(spelled, N), 1000 * N + 111)
long = [
    [N, "host-" + str(10**300 + 1), 1],
    [N, "host-" + str(10**300 + 2), 10],
    [N, "host-" + str(10**300 + 10**150 + 2), 100],
    [N, "most-" + str(10**300 + 2), 1000 * N],
]
check("names count from end to end however long they are", solve(long, N), 1000 * N + 111)
foreign = [
    [N, "\u00e9", 1],  # e with an acute accent
    [N, "e\u0301", 10],  # the same in two code points
    [N, "\u00e8", 100],
    [N, "e", 1000 * N],
    [N, "?", 10000],
    [N, "\u2460", 100000],  # 1 in a circle
    [N, "1", 10**6],
    [N, " e", 10**7],
    [N, "e\0", 10**8],
]
check("accents, code points and blanks tell names apart", solve(foreign, N), 1000 * N + 111110111)
checksums = [
    [N, "plumless", 1],  # of one CRC-32
    [N, "buckeroo", 10],
    [N, "Aa", 100],  # of one polynomial hash
    [N, "BB", 1000 * N],
    [N, "ab", 10000],  # of the same letters
    [N, "ba", 100000],
]
check("names of one checksum are different workers", solve(checksums, N), 1000 * N + 110111)
built = [[N, str(1000 + N), 1], [N, 1000 + N, 10], [N, str(1000 + N), 200], [N, 1000 + N, 3000 * N]]
check("workers that are equal are the same worker", solve(built, N), 3000 * N + 200)

# What a step is.
wide = [
    [2**53 + 4 * N, "a", 1],
    [2**53 + 4 * N + 1, "a", 5],
    [2**64 + 4 * N, "b", 50],
    [4 * N, "b", 500],
]
check("steps beyond 2**53 are told apart", solve(wide, 2**53 + 4 * N), 1)
check("steps are told apart by more than their last 64 bits", solve(wide, 2**64 + 4 * N), 50)
vast = [
    [2**200 + 4 * N, "a", 1],
    [2**200 + 4 * N + 1, "a", 20],
    [4 * N, "b", 300],
    [-(2**200) - 4 * N, "c", 4000],
]
check("steps beyond 2**128 are told apart", solve(vast, 2**200 + 4 * N), 1)
check(
    "steps that are equal are the same step",
    solve([[1000 + N, "a", N], [1000 + N, "b", 2]], 1000 + N),
    N + 2,
)
signs = [
    [N, "a", 1],
    [-N, "a", 20],
    [0, "a", 300],
    [-N, "b", 4000 * N],
    [0, "b", 5],
    [N, "b", 60000],
]
check("a negative step is a step of its own", solve(signs, -N), 4000 * N + 20)
check("step zero is a step of its own", solve(signs, 0), 305)

# What kind of number comes out.
check(
    "an int and floats give an exact float",
    solve([[N, "a", 0.125], [N, "b", N], [N, "c", 0.25]], N),
    0.375 + N,
)
check("whole floats give a float", solve([[N, "a", 0.5], [N, "b", N + 0.5]], N), N + 1.0)
check("floats that cancel give 0.0", solve([[N, "a", N + 0.5], [N, "b", -0.5 - N]], N), 0.0)
check(
    "a superseded float leaves an int", solve([[N, "a", 0.5], [N, "b", N], [N, "a", 2]], N), N + 2
)
check(
    "an equal value of another type takes the place",
    solve([[N, "a", N], [N, "a", N + 0.0]], N),
    N + 0.0,
)
check(
    "large ints stay exact",
    solve([[N, "a", 2**53], [N, "b", N], [N, "c", 2**64], [N, "d", 2]], N),
    2**53 + 2**64 + N + 2,
)
huge = [[N, "a", 2**200], [N, "b", -(2**190)], [N, "c", N]]
check(
    "ints beyond 2**128 and beyond every float stay exact",
    [solve(huge, N), solve(huge + [[N, "d", 2**1100]], N)],
    [2**200 - 2**190 + N, 2**1100 + 2**200 - 2**190 + N],
)
check(
    "an eighth next to large floats is kept",
    solve([[N, "a", 2**29 + 0.125], [N, "b", N + 0.25], [N, "c", 2**29 - 0.5]], N),
    2**30 + N - 0.125,
)
check(
    "what is superseded costs the sum no digit",
    [
        solve([[N, "a", 0.5], [N, "a", 2**60 + N]], N),
        solve([[N, "a", 2**60], [N, "b", 0.125], [N, "a", N]], N),
    ],
    [2**60 + N, N + 0.125],
)

# What a call leaves behind.
kept = [[N, "a", 1], [N - 1, "a", 2], [N, "a", 30 * N], [N + 1, "b", 4], [N, "b", 5]]
check(
    "the caller's rows are left as they were",
    [solve(kept, N), kept],
    [30 * N + 5, [[N, "a", 1], [N - 1, "a", 2], [N, "a", 30 * N], [N + 1, "b", 4], [N, "b", 5]]],
)
check(
    "a call does not remember the one before",
    [solve([[N, "a", N]], N), solve([[N, "b", 2]], N), solve([], N)],
    [N, 2, 0],
)
check("rows may be tuples", solve(((N, "a", N), (N, "b", 2), [N, "a", 10]), N), 12)
