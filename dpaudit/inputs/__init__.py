"""Convert values in the notation of users, and the contents of their files, to Python values.

adjacency
    The relation that says which two inputs are neighbours, and so protected by the claim.
pair
    Two neighbouring inputs, d1 and d2.
record
    A row of a dataset: an item of a list, or a row of an array or a data frame.
group
    The number of records in which the inputs of a pair may differ, by the claim.
canary
    A record, or a gradient, that a fair coin includes in a training run or leaves out.
form
    The data type of a dataset: `array` (or `numpy`) for a NumPy array, `pandas` or `polars` for
    a data frame.
notation
    A mapping or text that stands for another value, such as `{tuple: [0, 1]}`.
base
    The folder in which relative files are looked for, after the working directory.
elsewhere
    Whether the process of the mechanism, not this process, makes the data frames.
words
    The description of a value or file, for messages.
"""
