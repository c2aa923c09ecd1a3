"""Mistakes that show in the exception alone, whatever the exercise, and what to tell the students who made them.

One of them is named if none of the known mistakes of the exercise gives the same results as the student's code.
"""

import re

from attnlib.checks.calling.call_submission import Answer
from attnlib.checks.catalogue.self_attention.sections import ATTENTION
from attnlib.checks.exercise import Mistake

CRASHES: list[tuple[re.Pattern[str], Mistake]] = []


def recognise_crash(answer: Answer) -> Mistake | None:
    """Return the mistake that an exception reveals, or None."""
    error = answer.error or ""
    if answer.line is None and "argument" in error:
        return None  # the call itself failed, which is reported separately
    return _broadcasting(error) or next((mistake for pattern, mistake in CRASHES if pattern.search(error)), None)


def _crash(identifier: str, pattern: str, title: str, says: str, hint: str, more: str) -> Mistake:
    mistake = Mistake(identifier, title, says, hint, more, ATTENTION, _by_its_exception)
    CRASHES.append((re.compile(pattern), mistake))
    return mistake


def _by_its_exception(*inputs: object) -> None:
    raise NotImplementedError("recognised by its exception, not by an implementation")


TOO_MUCH_MEMORY = _crash(
    "too-much-memory",
    "TooMuchMemoryError",
    "an array that the task does without",
    "Somewhere on the way, your code makes an array that is larger than the task allows. It may be the function of an "
    "earlier task under a new name.",
    "Write the shape beside each line of your code, with letters. Which array has more letters than the task allows?",
    "The code that you were given makes no such array. Start from that code, and change only what is wrong in it.",
)

# Two shapes that do not fit ------------------------------------------------------------------------------------------

SHAPES = re.compile(r"broadcast together with (?:remapped )?shapes \(([\d,]*)\) \(([\d,]*)\)( \([\d,]*\))?")
NEVER = r"(?!)"  # these three are recognised by the sizes, not by the wording

KEEPDIMS = _crash(
    "no-keepdims",
    NEVER,
    "a sum, mean or maximum without keepdims",
    "You combine an array with its own sums, means or maxima. These have one axis fewer, so they line up with the "
    "wrong axis.",
    "Which of your lines takes a sum, a mean, a norm or a maximum along the last axis? What shape does the result "
    "have?",
    "keepdims=True (keepdim=True in torch) leaves an axis of size 1 in its place, so that every row is combined with "
    "its own number.",
)
TWO_ROWS = _crash(
    "two-rows",
    NEVER,
    "two rows of numbers of different lengths are combined",
    "You combine two one-dimensional arrays element by element, but they have different lengths.",
    "Should every number of the first be combined with every number of the second? How many results would that give?",
    "A column (n, 1) and a row (m,) broadcast to a table (n, m). x[:, None] turns a row into a column.",
)
NEW_AXIS_LAST = _crash(
    "new-axis-at-the-end",
    NEVER,
    "a new axis is at the end instead of at the front",
    "You give an array an axis of size 1 at the end. All its other axes then line up one place too far to the left.",
    "Write the two shapes one below the other, aligned on the right. Where is the axis of size 1 missing?",
    "x[..., None] adds an axis at the end, x[None] one at the front, and x[:, None] one after the first.",
)


def _broadcasting(error: str) -> Mistake | None:
    """Return the mistake behind two shapes that NumPy cannot broadcast, or None."""
    found = SHAPES.search(error)
    if not found:
        return None
    for one, other in (_sizes(found), _sizes(found)[::-1]):
        if len(other) > 1 and one == other[:-1]:
            return KEEPDIMS
        if len(one) > 1 and one[-1] == "1" and one[:-1] == other[1 - len(one) :]:
            return NEW_AXIS_LAST
    if found[3]:  # the shape of the array that is written into, for example by +=
        return OTHER_ROOM
    return TWO_ROWS if all(len(sizes) == 1 for sizes in _sizes(found)) else None


def _sizes(found: re.Match[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    one, other = (tuple(filter(None, text.split(","))) for text in found.group(1, 2))
    return one, other


OTHER_ROOM = _crash(
    "other-room",
    r"could not broadcast input array from shape|non-broadcastable output operand",
    "the part of an array that you write into has another shape",
    "You write numbers into a part of an array that does not have their shape.",
    "How large is the array that you write into, and from which sizes did you make it?",
    "Keys, values and queries can differ in width and in number, and there can be more of them than in the example.",
)
_crash(
    "reshape-to-another-size",
    r"cannot reshape array of size|is invalid for input of size",
    "a reshape to more or fewer entries than there are",
    "You reshape an array to sizes whose product is not the number of its entries.",
    "Which sizes do you pass in that line, and where do they come from? Is any of them a number from an example?",
    "Multiply the sizes for the case above, and print the shape of the array that you reshape.",
)
_crash(
    "joined-axes-differ",
    r"except for the concatenation axis must match|Sizes of tensors must match except in dimension",
    "the arrays that are joined differ in another axis",
    "Arrays that you join along one axis must have the same size in all the others, and these do not.",
    "Print the shapes of what you join. Are these the right two arrays, and is this the axis along which they grow?",
    "Keys belong to keys and values to values: the widths of the two may differ.",
)
_crash(
    "joined-dimensions-differ",
    r"all the input arrays? must have (the )?same number of dimensions|Tensors must have same number of dimensions",
    "the arrays that are joined have different numbers of dimensions",
    "One of the arrays that you join has more dimensions than another.",
    "Print the shapes of what you join. Which line has removed, or added, a dimension?",
    "squeeze() without an axis and indexing with a number remove dimensions. x[..., None, :] adds one.",
)
_crash(
    "stacked-shapes-differ",
    r"stack expects each tensor to be equal size|all input arrays must have the same shape",
    "the arrays that are stacked have different shapes",
    "Arrays that you stack on a new axis must all have the same shape, and these do not.",
    "Print the shapes of what you stack. Which of them is not what you expected, and which line made it?",
    "x[..., 0::2] and x[..., 1::2] have the same width only if the width of x is even.",
)


# What Python, NumPy and torch say ------------------------------------------------------------------------------------

_crash(
    "mixed-libraries",
    r"expected Tensor as element|must be Tensor, not (numpy\.)?ndarray"
    r"|ndarray' object has no attribute '(unsqueeze|masked_fill_?|softmax|view|permute|dim|detach|contiguous|matmul|exp"
    r"|tanh|sqrt|norm|logsumexp|expand|new_\w+|t|float|double|bmm|clone|unbind|chunk|split|numel|requires_grad)'"
    r"|for \S+ '(Tensor|numpy\.ndarray)' and '(numpy\.ndarray|Tensor)'"
    r"|Tensor' object has no attribute '(astype|copy)'",
    "NumPy and torch are mixed up",
    "You give an array of one library to a function of the other, or call a method that only the other one has.",
    "Do the arguments of this task come from NumPy or from torch? Which one does the function in that line come from?",
    "np.concatenate is torch.cat, np.expand_dims is unsqueeze, np.where is torch.where, and both accept x[..., None].",
)
_crash(
    "number-for-a-tensor",
    r"must be Tensor, not (int|float)",
    "a plain number is given to a function of torch",
    "Functions such as torch.sqrt and torch.exp take tensors. You give one a plain number, such as a size.",
    "Which argument in that line is a size or another plain number? How do you take its square root without torch?",
    "math.sqrt(d) and d ** 0.5 work for plain numbers, and a tensor can be divided by the result.",
)
_crash(
    "two-dtypes",
    r"same dtype|expected scalar type",
    "tensors of two dtypes are combined",
    "You combine a float32 tensor with a float64 one, and torch does not convert either of them by itself.",
    "Which tensor in that line do you make or convert yourself? What is its dtype, and what is the dtype of the "
    "tensors that were passed in?",
    "torch.zeros, torch.ones and torch.tensor make float32 unless they are given a dtype, and float() always does. "
    "new_zeros uses the dtype of the tensor that it is called on.",
)
_crash(
    "array-for-a-number",
    r"only (size-1|length-1|0-dimensional|integer scalar) arrays|only one element tensors can be converted",
    "a function for one number is given an array",
    "You give a whole array to something that takes a single number.",
    "Which function in that line takes a single number only, as float(), int() and those of the math module do?",
    "np.exp, np.sqrt and np.tanh, or torch.exp and the like, work on every element of an array.",
)
_crash(
    "pair-for-an-array",
    r"torch\.return_types\.|'tuple' object has no attribute|for \S+ '(tuple' and '(numpy\.ndarray|Tensor|float|int)"
    r"|(numpy\.ndarray|Tensor|float|int)' and 'tuple)'|must be Tensor, not tuple|bad operand type for unary .* 'tuple'",
    "a tuple is used as if it were one array",
    "A function that you call returns several results in a tuple, and you use the tuple as if it were one array.",
    "What does each function in that line return? Print the type of the result.",
    "In torch, x.max(dim=...) returns the values and their indices, and an attention function often returns the "
    "weights as well. Take the one you need: values, indices = x.max(dim=...), or x.amax(dim=...).",
)
_crash(
    "truth-of-an-array",
    r"truth value of an array|Boolean value of Tensor",
    "an array is used where a single yes or no is needed",
    "`if`, `and`, `or` and `not` need one yes or no, and an array holds many.",
    "What do you want to know: whether the array was given at all, or something about each of its numbers?",
    "x is None tells whether the array is missing. np.where and torch.where choose for each number separately.",
)
_crash(
    "view-of-a-transpose",
    r"view size is not compatible",
    "view after transpose",
    "view can only read the numbers in the order in which they are stored in memory, and transposing changes that "
    "order.",
    "Which line calls view on a tensor that has been transposed?",
    "reshape copies the numbers where it has to. contiguous() before view does the same.",
)
_crash(
    "no-forward",
    r'missing the required "forward" function',
    "the module has no forward",
    "torch looks for a method named forward, and your class has none.",
    "How is it spelled, and how far is it indented? A function inside __init__ is not a method.",
    "def forward(self, ...) is indented as far as def __init__(self, ...).",
)
_crash(
    "method-for-a-number",
    r"is a method, but a number is needed",
    "a method instead of a number",
    "You have written a method, which has to be called. The task asks for a number that is read without parentheses.",
    "Where do you keep the number, and what is its name?",
    "Assign the number to self.length in __init__ and every call that changes it, or put @property above the method.",
)
_crash(
    "other-parameters",
    r"among its parameters$",
    "the parameters of your class do not match the weights that it is given",
    "The weights are loaded by name, so the parameters of your class need the names that the task gives.",
    "Print the names in your_module.state_dict(). Which are missing, and which are extra?",
    "A part's name is the one under which you assign it to self. Two names for one module are one set of weights.",
)
_crash(
    "shape-of-a-parameter",
    r"has shape \(.*\), but \(.*\) is needed",
    "a parameter has the wrong shape",
    "One of your layers has different sizes from the weights that it is given.",
    "nn.Linear(i, o) maps i numbers to o numbers. Which two numbers did you pass, and in which order?",
    "The weight of nn.Linear(i, o) has shape (o, i). Do the sizes agree with those that __init__ was given?",
)
_crash(
    "unequal-split",
    r"does not result in an equal division|split_with_sizes|not divisible|must be divisible",
    "the parts of a split have different sizes",
    "You split an axis into equal parts, but its size is not a multiple of their number.",
    "Which axis do you split, and should all of it be split?",
    "x[..., :n] and x[..., n:] can split an axis at any position.",
)
_crash(
    "list-and-tuple",
    r'can only concatenate (list|tuple|str) \(not "|for \+: \'(list|tuple)\' and|int\' and \'(list|tuple)\'',
    "a list or a tuple is added to something of another type",
    "+ joins two lists or two tuples, but not one of each, and it joins neither with a number.",
    "Print the type of both sides of the +.",
    "tuple(x) and list(x) turn one into the other; (n,) is a tuple that holds one number.",
)
_crash(
    "number-for-a-list",
    r"object is not (iterable|subscriptable)|iteration over a 0-d|len\(\) of (unsized object|a 0-d)|has no len\(\)"
    r"|invalid index to scalar|invalid index of a 0-dim",
    "one number is used as if it were a list or an array",
    "You loop over a single number, index it, or ask for its length.",
    "How many dimensions does your input have in this case, and what does a loop over it give in each step?",
    "A loop over an array goes through its first axis. For a row it gives numbers; for a table it gives rows.",
)
_crash(
    "third-argument",
    r"output array (is not acceptable|has (wrong|incorrect))|return arrays? must be of ArrayType"
    r"|output must be an array",
    "a third array is given to a function of two",
    "np.dot, np.matmul and most other NumPy functions take the array to write into as an extra argument.",
    "How many arrays does the function in that line combine, and how many do you pass?",
    "Multiply two arrays first, then multiply the result by the third.",
)
_crash(
    "no-inverse",
    r"LinAlgError|linalg\.(inv|solve)|must be batches of square matrices|singular",
    "a matrix without an inverse is inverted",
    "Only a square matrix can have an inverse, and not every square matrix has one.",
    "Does the formula of the task contain an inverse, or a transpose?",
    "If the shapes do not fit without the inverse, print them: perhaps only the order of the factors is wrong.",
)
_crash(
    "dimensions-of-repeat",
    r"Number of dimensions of (repeat|tile) dims",
    "repeat is given too few numbers",
    "torch's repeat takes one number for each dimension of the tensor: how often to repeat the tensor along it.",
    "How many dimensions does the tensor in that line have, and how many numbers do you pass?",
    "torch.cat([x, x], dim=-1) repeats only along the last dimension, and so does x.tile(2).",
)
_crash(
    "none-for-a-value",
    r"NoneType",
    "None is used as if it were a number or an array",
    "One of the values in that line is None: an argument that was left out, or the result of a function that returns "
    "nothing.",
    "Which name in that line can be None, and when? Is a test for None inverted?",
    "An argument that defaults to None has to be replaced before it is used. append, extend and sort change a list "
    "and return None.",
)
_crash(
    "mask-for-an-index",
    r"boolean index did not match|shape of the mask .* does not match the shape of the indexed",
    "a mask is used as the index of an array of another shape",
    "An array of True and False that is used as an index needs the shape of what it indexes: an index is not "
    "broadcast.",
    "Compare the shape of the mask with that of the array. Which leading dimensions does it lack?",
    "np.where(mask, x, y) and torch.where broadcast the mask, and so does multiplying by it.",
)
_crash(
    "too-many-indices",
    r"too many indices",
    "more indices than the array has dimensions",
    "You index more dimensions than the array has.",
    "How many dimensions does the array in that line have in this case? Print its shape.",
    "x[..., i] and x[..., i, :] count from the end, and work however many dimensions come before.",
)
_crash(
    "index-past-the-end",
    r"IndexError: (index|list index|tuple index|string index|select\(\)|index_select)",
    "an index runs past the end",
    "You ask for an element that does not exist: the index is as large as the size of that axis, or larger.",
    "How far does your index run, and along which axis? How large is that axis in this case?",
    "The largest index is one less than the size. There can be more queries than keys, or fewer, and more positions "
    "than rows, or fewer.",
)
_crash(
    "written-in-place",
    r"in-?place operation|leaf Variable",
    "a tensor that the gradients need is changed in place",
    "You write into a tensor that autograd still needs for the gradients.",
    "Which line assigns to x[...], uses += or calls a method whose name ends in an underscore?",
    "Make a new tensor instead: torch.where, torch.stack, torch.cat, or x = x + y.",
)
_crash(
    "real-into-whole",
    r"Cannot cast (ufunc|array data)|can't be cast to the desired output type",
    "real numbers are written into an array of whole numbers",
    "Your result is an array of integers, which cannot hold what you write into it.",
    "What is the dtype of the array on the left, and what was it made from?",
    "Give np.zeros, np.empty or torch.zeros the dtype of what you compute, or let a formula make the array.",
)
_crash(
    "unknown-name",
    r"^(NameError|UnboundLocalError)",
    "a name without a value",
    "Your function uses a name that has no value at that point.",
    "Is it a typo, an import that is missing, or a name that is set in only one branch of an if or a loop?",
    "A function can use its arguments and what it has computed itself. A loop that never runs assigns nothing.",
)
_crash(
    "no-such-attribute",
    r"^AttributeError",
    "a method or attribute that does not exist",
    "You ask an object, or a module, for something that it does not have.",
    "What type is the object in that line? Is the name spelled as in its documentation?",
    "A layer or buffer of a module exists once __init__ has assigned it to self, after super().__init__().",
)
_crash(
    "other-arguments",
    r"missing \d+ required|positional arguments? but|unexpected keyword argument|got multiple values",
    "a function is called with arguments that it does not take",
    "A call in that line passes too many arguments, too few, or one with a name that the function does not know.",
    "Look the function up with help(...): which arguments does it take, in which order?",
    "NumPy says axis and keepdims, torch says dim and keepdim. A method's first argument is self.",
)
_crash(
    "not-a-function",
    r"object is not callable",
    "something that is not a function is called",
    "There are parentheses (...) after something that is not a function.",
    "Which name in that line is followed by parentheses? Did you give a function's name to something else earlier?",
    "x.shape is read without parentheses; torch's x.size() is a call and needs them.",
)
_crash(
    "endless-recursion",
    r"^RecursionError",
    "the function calls itself without end",
    "Your function calls itself again and again.",
    "Which line makes your function call itself, perhaps because it has the same name as another function?",
    "Do not give your own function or variable the name of something that it uses.",
)
_crash(
    "division-by-zero",
    r"^ZeroDivisionError",
    "a division by zero",
    "You divide a plain number by 0.",
    "Which size or count in that line can be 0, and what should the result be then?",
    "Print the divisor for the case above, and work that case out by hand.",
)
