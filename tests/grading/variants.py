"""The functions of one assignment, each written by six people who know nothing of each other; all are right."""

from grading.class_report.student_code import CodeCell

CELLS = {
    "softmax": [
        """def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
""",
        """def softmax(x, axis=-1):
    m = np.max(x, axis=axis, keepdims=True)
    z = np.exp(x - m)
    s = np.sum(z, axis=axis, keepdims=True)
    return z / s
""",
        """def softmax(x, axis=-1):
    # move the axis to the end, work there, move it back
    y = np.moveaxis(x, axis, -1)
    y = y - np.amax(y, -1)[..., None]
    y = np.exp(y)
    y /= y.sum(-1)[..., None]
    return np.moveaxis(y, -1, axis)
""",
        """def softmax(x, axis=-1):
    largest = np.expand_dims(np.max(x, axis), axis)
    numerator = np.exp(np.subtract(x, largest))
    return np.divide(numerator, np.expand_dims(np.sum(numerator, axis), axis))
""",
        """def softmax(x, axis=-1):
    shifted = x - np.max(x, axis=axis, keepdims=True)
    log_total = np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))
    return np.exp(shifted - log_total)
""",
        """def softmax(x, axis=-1):
    def one(v):
        w = np.exp(v - v.max())
        return w / w.sum()
    return np.apply_along_axis(one, axis, x)
""",
    ],
    "dot": [
        """def dot(query, key):
    return query @ key.swapaxes(-1, -2)
""",
        """def dot(query, key):
    return np.einsum("...td,...sd->...ts", query, key)
""",
        """def dot(query, key):
    keyT = np.swapaxes(key, -2, -1)
    return np.matmul(query, keyT)
""",
        """def dot(query, key):
    return (query[..., :, None, :] * key[..., None, :, :]).sum(-1)
""",
        """def dot(query, key):
    axes = list(range(key.ndim))
    axes[-1], axes[-2] = axes[-2], axes[-1]
    return query @ key.transpose(axes)
""",
        """def dot(query, key):
    product = np.expand_dims(query, -2) * np.expand_dims(key, -3)
    return np.sum(product, axis=-1)
""",
    ],
    "cosine": [
        """def cosine(query, key):
    lengths = np.linalg.norm(query, axis=-1)[..., :, None] * np.linalg.norm(key, axis=-1)[..., None, :]
    return dot(query, key) / np.where(lengths == 0, 1, lengths)
""",
        """def unit(x):
    n = np.sqrt((x ** 2).sum(-1, keepdims=True))
    n[n == 0] = 1
    return x / n

def cosine(query, key):
    return dot(unit(query), unit(key))
""",
        """def cosine(query, key):
    qn = np.linalg.norm(query, axis=-1, keepdims=True)
    kn = np.linalg.norm(key, axis=-1, keepdims=True)
    qn = np.where(qn > 0, qn, 1.0)
    kn = np.where(kn > 0, kn, 1.0)
    return dot(query / qn, key / kn)
""",
        """def cosine(query, key):
    num = dot(query, key)
    den = np.sqrt(np.sum(query * query, -1))[..., None] * np.sqrt(np.sum(key * key, -1))[..., None, :]
    return np.divide(num, den, out=np.zeros_like(num), where=den != 0)
""",
        """def cosine(query, key):
    result = dot(query, key)
    for i in range(query.shape[-2]):
        for j in range(key.shape[-2]):
            length = np.linalg.norm(query[..., i, :], axis=-1) * np.linalg.norm(key[..., j, :], axis=-1)
            result[..., i, j] = np.where(length == 0, 0, result[..., i, j] / np.maximum(length, 1e-300))
    return result
""",
        """def cosine(query, key):
    a = dot(query, query).diagonal(axis1=-2, axis2=-1) ** 0.5
    b = dot(key, key).diagonal(axis1=-2, axis2=-1) ** 0.5
    both = a[..., :, None] * b[..., None, :]
    safe = both + (both == 0)
    return dot(query, key) / safe
""",
    ],
    "gaussian": [
        """def gaussian(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]  # (..., T, S, D)
    return -np.sum(differences**2, axis=-1) / (2 * bandwidth**2)
""",
        """def gaussian(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]  # (..., T, S, D)
    squared = np.square(differences).sum(axis=-1)
    return -0.5 * squared / bandwidth ** 2
""",
        """def gaussian(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]  # (..., T, S, D)
    scaled = differences / bandwidth
    return -0.5 * np.einsum("...d,...d->...", scaled, scaled)
""",
        """def gaussian(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]  # (..., T, S, D)
    distance = np.linalg.norm(differences, axis=-1)
    return -(distance ** 2) / (2 * bandwidth * bandwidth)
""",
        """def gaussian(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]  # (..., T, S, D)
    total = 0
    for d in range(differences.shape[-1]):
        total = total + differences[..., d] ** 2
    return total / (-2 * bandwidth ** 2)
""",
        """def gaussian(query, key, bandwidth=1.0):
    differences = query[..., :, None, :] - key[..., None, :, :]  # (..., T, S, D)
    h2 = bandwidth * bandwidth
    s = (differences * differences).sum(-1)
    return np.negative(s) / 2 / h2
""",
    ],
    "mended": [
        """def gaussian_mended(query, key, bandwidth=1.0):
    apart = np.sum(query**2, -1)[..., :, None] + np.sum(key**2, -1)[..., None, :] - 2 * attnlib.dot(query, key)
    return -apart / (2 * bandwidth**2)
""",
        """def gaussian_mended(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    length_of_query = np.sum(query * query, axis=-1)[..., :, None]
    length_of_key = np.sum(key * key, axis=-1)[..., None, :]
    apart = length_of_query + length_of_key - 2 * attnlib.dot(query, key)
    return -apart / 2
""",
        """def gaussian_mended(query, key, bandwidth=1.0):
    q2 = np.einsum("...d,...d->...", query, query)
    k2 = np.einsum("...d,...d->...", key, key)
    return (dot(query, key) - 0.5 * q2[..., None] - 0.5 * k2[..., None, :]) / bandwidth ** 2
""",
        """def gaussian_mended(query, key, bandwidth=1.0):
    a = np.linalg.norm(query, axis=-1, keepdims=True) ** 2
    b = np.linalg.norm(key, axis=-1, keepdims=True) ** 2
    d2 = a + b.swapaxes(-1, -2) - dot(query, key) - dot(query, key)
    return -d2 / (2 * bandwidth ** 2)
""",
        """def gaussian_mended(query, key, bandwidth=1.0):
    mixed = dot(query / bandwidth, key / bandwidth)
    own = ((query / bandwidth) ** 2).sum(-1, keepdims=True) / 2
    theirs = ((key / bandwidth) ** 2).sum(-1)[..., np.newaxis, :] / 2
    return mixed - own - theirs
""",
        """def gaussian_mended(query, key, bandwidth=1.0):
    h = 2 * bandwidth ** 2
    cross = np.matmul(query, np.swapaxes(key, -1, -2))
    squares = np.expand_dims((query ** 2).sum(-1), -1) + np.expand_dims((key ** 2).sum(-1), -2)
    return (2 * cross - squares) / h
""",
    ],
    "attention": [
        """def attention(query, key, value):
    weights = softmax(dot(query, key) / np.sqrt(query.shape[-1]))
    return weights @ value, weights
""",
        """def attention(query, key, value):
    d = query.shape[-1]
    scores = dot(query, key) / d ** 0.5
    w = softmax(scores, axis=-1)
    context = w @ value
    return context, w
""",
        """def attention(query, key, value):
    width = key.shape[-1]
    scores = dot(query / width**0.5, key)
    weights = softmax(scores, axis=-1)
    context = np.einsum("...ts,...sv->...tv", weights, value)
    return context, weights
""",
        """def attention(query, key, value):
    *_, D = np.shape(query)
    alpha = softmax(np.multiply(dot(query, key), D ** -0.5))
    return np.matmul(alpha, value), alpha
""",
        """def attention(query, key, value):
    root = math.sqrt(query.shape[-1])
    table = dot(query, key)
    table = table / root
    table = softmax(table)
    out = np.matmul(table, value)
    return (out, table)
""",
        """def attention(query, key, value):
    scale = 1 / np.sqrt(key.shape[-1])
    weights = softmax(scale * dot(query, key), -1)
    averages = (weights[..., None] * value[..., None, :, :]).sum(-2)
    return averages, weights
""",
    ],
    "self-attention": [
        """def self_attention(x):
    return attention(x, x, x)
""",
        """def self_attention(x):
    return attention(x, x, x)
""",
        """def self_attention(x):
    return attention(x, x, x)
""",
        """def self_attention(x):
    return attention(x, x, x)
""",
        """def self_attention(x):
    scores = dot(x, x) / np.sqrt(x.shape[-1])
    weights = softmax(scores)
    return weights @ x, weights
""",
        """def self_attention(x):
    context, weights = attention(query=x, key=x, value=x)
    return context, weights
""",
    ],
    "torch-attention": [
        """import torch
def attention_torch(query, key, value):
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
""",
        """import torch
def attention_torch(query, key, value):
    weights = (query @ key.mT / query.size(-1) ** 0.5).softmax(-1)
    return weights @ value, weights
""",
        """import torch
def attention_torch(query, key, value):
    d = query.shape[-1]
    s = torch.matmul(query, key.swapaxes(-2, -1)) / math.sqrt(d)
    e = torch.exp(s - s.max(dim=-1, keepdim=True).values)
    w = e / e.sum(dim=-1, keepdim=True)
    return torch.matmul(w, value), w
""",
        """import torch
def attention_torch(query, key, value):
    scores = torch.einsum("...td,...sd->...ts", query, key)
    scores = scores / torch.sqrt(torch.tensor(query.shape[-1]))
    alpha = torch.nn.functional.softmax(scores, dim=-1)
    context = torch.einsum("...ts,...sv->...tv", alpha, value)
    return context, alpha
""",
        """import torch
import torch.nn.functional as F
def attention_torch(query, key, value):
    logits = query.matmul(key.transpose(-2, -1)).div(query.shape[-1] ** 0.5)
    w = F.softmax(logits, -1)
    return w.matmul(value), w
""",
        """import torch
def attention_torch(query, key, value):
    scaled = query * query.shape[-1] ** -0.5
    table = torch.matmul(scaled, key.transpose(-1, -2))
    attn = torch.softmax(table, -1)
    mixed = torch.matmul(attn, value)
    return mixed, attn
""",
    ],
    "smooth": [
        """def smooth(at, times, measured, bandwidth):
    weights = softmax(gaussian(at[:, None], times[:, None], bandwidth))
    return weights @ measured
""",
        """def smooth(at, times, measured, bandwidth):
    s = gaussian(at[:, np.newaxis], times[:, np.newaxis], bandwidth)
    w = softmax(s, axis=-1)
    return (w * measured).sum(axis=1)
""",
        """def smooth(at, times, measured, bandwidth):
    q = at.reshape(-1, 1)
    k = times.reshape(-1, 1)
    v = measured.reshape(-1, 1)
    return (softmax(gaussian(q, k, bandwidth)) @ v)[:, 0]
""",
        """def smooth(at, times, measured, bandwidth):
    scores = gaussian(at[..., None], times[..., None], bandwidth=bandwidth)
    return np.dot(softmax(scores), measured)
""",
        """def smooth(at, times, measured, bandwidth):
    raise NotImplementedError()
""",
        """def smooth(at, times, measured, bandwidth):
    raise NotImplementedError()
""",
    ],
}

ANSWERS = [[CodeCell(name, ways[i]) for name, ways in CELLS.items()] for i in range(6)]
