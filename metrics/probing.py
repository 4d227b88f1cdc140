"""Probes of embeddings: closed forms and networks, how they are fitted, and scores of their errors."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .arrays import ROUNDING, Floats, Ints, nearest_name

PROBES = ("ridge", "kernel", "slp", "mlp")
"""`ridge` and `kernel` are closed forms; `slp`, one linear layer, and `mlp` are the probes of arXiv 2505.06224."""

PENALTIES = np.logspace(-2, 6, 17)
"""Penalties of ridge that validation chooses from; features have a mean variance of 1."""

KERNEL_PENALTIES = np.logspace(-6, 1, 15)
KERNEL_WIDTHS = (4.0, 1.0, 0.25)
"""Squared widths of the Gaussian kernel, in median squared distances of training rows."""

LANDMARKS = 512
"""Training rows that span the functions of the kernel probe (Nyström's method). With at most this many rows it is exact
kernel ridge regression; with more, its cost grows linearly."""

HIDDEN = (512, 256)
EPOCHS, PATIENT_EPOCHS, BATCH_ROWS, LEARNING_RATE, DECAY = 100, 10, 32, 1e-3, 1e-3
STATES = 3
"""Layers of the MLP and random states; `slp` and `mlp` are trained by Adam with early stopping on validation, and
averaged over the states (arXiv 2505.06224, section IV; its code for epochs and patience)."""

ROWS_AT_ONCE = 4_096
"""Rows centred at a time."""

SHUFFLES = 5
"""Permutations of the labels whose mean score is the null; 1 if probes are trained by gradient descent."""


def probe_names(probes: str | Sequence[str]) -> tuple[str, ...]:
    """Return the probes in the order of PROBES, or raise ValueError."""
    names = (probes,) if isinstance(probes, str) else tuple(probes)
    for name in names:
        if name not in PROBES:
            raise ValueError(
                f"probes has {name!r}; it must be one of {PROBES}. Did you mean {nearest_name(str(name), PROBES)!r}?"
            )
    if not names:
        raise ValueError(f"probes is empty; it must name one or more of {PROBES}.")
    return tuple(name for name in PROBES if name in names)


def standardised_rows(z: Floats) -> Floats:
    """Return embeddings [n, dim] centred and divided by the root of their mean variance; zeros if all are equal.

    No score of a closed form depends on this. It prevents a large mean from costing precision, and rounding errors of a
    constant encoder from looking like knowledge.
    """
    centred = z - z.mean(axis=0)
    if np.abs(centred).max() <= ROUNDING * np.abs(z).max():
        return np.zeros_like(z)
    standardised: Floats = centred / np.sqrt(centred.var(axis=0).mean())
    return standardised


def row_parts(count: int) -> list[slice]:
    """Return slices of rows, since a copy of very many rows would be the largest array."""
    return [slice(row, row + ROWS_AT_ONCE) for row in range(0, count, ROWS_AT_ONCE)]


class Ridge:
    """Ridge regression of y [n, targets] on x [n, dim] for all penalties, from one eigendecomposition.

    Features are centred and divided by one number, the root of their mean variance over `dim` dimensions (0: not
    divided), so the fit depends on neither their unit nor their basis.
    """

    def __init__(self, x: Floats, y: Floats, penalties: Floats, dim: int) -> None:
        self.penalties = penalties
        self._mean, self._offset, self._scale = x.mean(axis=0), y.mean(axis=0), 1.0
        if dim:
            centred = (self._scaled(x[part]) for part in row_parts(len(x)))
            self._scale = float(np.sqrt(sum(np.einsum("ij,ij->", rows, rows) for rows in centred) / (len(x) * dim)))
        if self._scale <= ROUNDING * max(x.max(), -x.min()):
            self._scale = np.inf  # turns equal values into zeros
        if len(x) < x.shape[1]:
            # Eigenvectors of the rows give the eigenvectors of the columns, times the root of their eigenvalue.
            rows = self._scaled(x)
            values, vectors = np.linalg.eigh(rows @ rows.T)
            self._basis = rows.T @ vectors
            self._coefficients = vectors.T @ (y - self._offset)
        else:
            gram, crossed = np.zeros((x.shape[1], x.shape[1])), np.zeros((x.shape[1], y.shape[1]))
            for part in row_parts(len(x)):
                rows = self._scaled(x[part])
                gram += rows.T @ rows
                # The columns sum to 0, so y does not need to be centred.
                crossed += rows.T @ y[part]
            values, self._basis = np.linalg.eigh(gram)
            self._coefficients = self._basis.T @ crossed
        self._divisors = np.clip(values, 0.0, None)

    def predict(self, x: Floats, penalties: Floats) -> Floats:
        """Return predictions [m, targets] with a penalty for each target."""
        weights: Floats = self._coefficients / (self._divisors[:, None] + penalties)
        predictions: Floats = self._projected(x) @ weights + self._offset
        return predictions

    def losses(self, x: Floats, y: Floats, groups: Sequence[int]) -> Floats:
        """Return the mean squared error on other rows, [penalties, groups].

        `groups` are numbers of consecutive targets.
        """
        projected, residual = self._projected(x), y - self._offset
        # |A D C − Y|² for each diagonal D, from products that do not depend on D.
        gram, crossed = projected.T @ projected, projected.T @ residual
        weights = 1 / (self._divisors + self.penalties[:, None])
        losses = np.empty((len(self.penalties), len(groups)))
        for group, end in enumerate(np.cumsum(groups)):
            columns = slice(end - groups[group], end)
            coefficients = self._coefficients[:, columns]
            squares = ((weights @ (gram * (coefficients @ coefficients.T))) * weights).sum(axis=1)
            products = weights @ (coefficients * crossed[:, columns]).sum(axis=1)
            error = squares - 2 * products + float(np.square(residual[:, columns]).sum())
            losses[:, group] = np.maximum(error, 0.0) / (len(y) * groups[group])
        return losses

    def _scaled(self, x: Floats) -> Floats:
        scaled: Floats = x - self._mean
        scaled /= self._scale
        return scaled

    def _projected(self, x: Floats) -> Floats:
        projected: Floats = self._scaled(x) @ self._basis
        return projected


class Kernel(Ridge):
    """Ridge regression on the functions spanned by a Gaussian kernel at some training rows, the landmarks.

    Its inputs are squared distances from the landmarks [n, landmarks], which serve all widths.
    """

    def __init__(self, between: Floats, distances: Floats, y: Floats, width: float) -> None:
        median = float(np.median(between[np.triu_indices(len(between), 1)])) if len(between) > 1 else 0.0
        self._width = 2 * width * (median or 1.0)
        kernel = np.exp(-between / self._width)
        if len(distances) > len(between):
            # Nyström's method is approximate, so adding a small term to make the kernel invertible is harmless.
            self._map = np.linalg.inv(np.linalg.cholesky(kernel + 1e-8 * np.eye(len(kernel)))).T
        else:
            values, vectors = np.linalg.eigh(kernel)
            large = values > 1e-10 * values[-1]
            self._map = vectors[:, large] / np.sqrt(values[large])
        super().__init__(self._features(distances), y, KERNEL_PENALTIES, 0)

    def _features(self, distances: Floats) -> Floats:
        features = np.empty((len(distances), self._map.shape[1]))
        for part in row_parts(len(distances)):
            kernel = distances[part] / -self._width
            np.matmul(np.exp(kernel, out=kernel), self._map, out=features[part])
        return features

    def _projected(self, x: Floats) -> Floats:
        return super()._projected(self._features(x))


def squared_distances(x: Floats, y: Floats) -> Floats:
    """Return the squared distance of each row of x from each row of y."""
    distances: Floats = x @ (-2 * y).T
    distances += np.einsum("ij,ij->i", x, x)[:, None]
    distances += np.einsum("ij,ij->i", y, y)
    return np.maximum(distances, 0.0, out=distances)


Part = tuple[Floats, Floats]
"""Features [n, dim] and targets [n, targets] of some rows."""


def fit_probe(
    name: str,
    train: Part,
    validation: Part,
    x: Floats,
    seed: int = 0,
    scaled: bool = True,
    groups: Sequence[int] = (),
    dim: int = 0,
) -> tuple[Floats, Floats]:
    """Fit a probe; return its predictions for x, [m, targets], and its mean squared errors on the validation rows.

    `groups` are numbers of consecutive targets; each group is fitted separately, with its own penalty, and has its own
    error, [groups]; by default all targets are one group. `dim` is the number of dimensions that the features
    represent, if it is more than their columns. `seed` and `scaled` apply to `slp` and `mlp`.
    """
    groups = groups or (train[1].shape[1],)
    if name in ("slp", "mlp"):
        return train_probe(HIDDEN if name == "mlp" else (), train, validation, x, seed, scaled, groups)
    if name == "ridge":
        fits = [Ridge(*train, PENALTIES, dim or train[0].shape[1])]
    else:
        landmarks = train[0][np.linspace(0, len(train[0]) - 1, min(len(train[0]), LANDMARKS)).astype(int)]
        between, distances = squared_distances(landmarks, landmarks), squared_distances(train[0], landmarks)
        fits = [Kernel(between, distances, train[1], width) for width in KERNEL_WIDTHS]
        validation = (squared_distances(validation[0], landmarks), validation[1])
        x = squared_distances(x, landmarks)
    losses = np.stack([fit.losses(*validation, groups) for fit in fits])
    width, penalty = np.unravel_index(losses.reshape(-1, len(groups)).argmin(axis=0), losses.shape[:2])
    penalties, widths = np.repeat(fits[0].penalties[penalty], groups), np.repeat(width, groups)
    predictions = np.empty((len(x), len(widths)))
    for place in np.unique(width):
        predictions[:, widths == place] = fits[place].predict(x, penalties)[:, widths == place]
    return predictions, losses.min(axis=(0, 1))


def train_probe(
    hidden: Sequence[int], train: Part, validation: Part, x: Floats, seed: int, scaled: bool, groups: Sequence[int]
) -> tuple[Floats, Floats]:
    """Train one of the paper's probes by gradient descent on the squared error.

    With `scaled`, features and targets are scaled as in `Ridge`.
    """
    if len(groups) > 1:
        ends = np.cumsum(groups)[:-1]
        parts = zip(np.split(train[1], ends, axis=1), np.split(validation[1], ends, axis=1), strict=True)
        fits = [
            train_probe(hidden, (train[0], y), (validation[0], other), x, seed, scaled, (y.shape[1],))
            for y, other in parts
        ]
        return np.hstack([fit[0] for fit in fits]), np.concatenate([fit[1] for fit in fits])
    import torch

    mean, offset = train[0].mean(axis=0), train[1].mean(axis=0)
    scale = float(np.sqrt(train[0].var(axis=0).mean())) or 1.0
    spread = float(np.sqrt(train[1].var(axis=0).mean())) or 1.0
    if not scaled:
        mean, offset, scale, spread = np.zeros_like(mean), np.zeros_like(offset), 1.0, 1.0
    (inputs, targets), (held_inputs, held_targets) = (
        (
            torch.tensor((a - mean) / scale, dtype=torch.float32),
            torch.tensor((b - offset) / spread, dtype=torch.float32),
        )
        for a, b in (train, validation)
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = linear_layers((inputs.shape[1], *hidden, targets.shape[1]))
    best = descend(network, torch.nn.functional.mse_loss, (inputs, targets), (held_inputs, held_targets), seed)
    with torch.no_grad():
        predictions = network(torch.tensor((x - mean) / scale, dtype=torch.float32)).double().numpy()
    return predictions * spread + offset, np.array([best * spread**2])


def linear_layers(widths: Sequence[int]) -> Any:
    """Return linear layers from each width to the next, with ReLU between them, as a torch module."""
    import torch

    layers: list[torch.nn.Module] = []
    for layer, width in enumerate(widths[1:]):
        layers += [torch.nn.Linear(widths[layer], width), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def descend(network: Any, loss: Callable[[Any, Any], Any], train: Any, held: Any, seed: int) -> float:
    """Train a torch module on inputs and targets; return its smallest mean loss on the validation rows.

    The weights of the epoch that validates best are copied, so that later epochs do not change them, and restored at
    the end.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    adam = torch.optim.Adam(network.parameters(), LEARNING_RATE, weight_decay=DECAY)
    best, waited = np.inf, 0
    state: dict[str, Any] = {}
    for _ in range(EPOCHS):
        for rows in torch.split(torch.randperm(len(train[0]), generator=generator), BATCH_ROWS):
            adam.zero_grad()
            torch.autograd.backward(loss(network(train[0][rows]), train[1][rows]))
            adam.step()
        with torch.no_grad():
            error = float(loss(network(held[0]), held[1]))
        if error < best:
            best, waited = error, 0
            state = {name: value.clone() for name, value in network.state_dict().items()}
        else:
            waited += 1
            if waited == PATIENT_EPOCHS:
                break
    if state:
        network.load_state_dict(state)
    return best


# ----- fits and scores of probes
def block_permutations(block: Ints, count: int, seed: int) -> list[Ints]:
    """Return the rows whose labels replace each row's own: blocks permuted among blocks, and rows within each block.

    Rows of one block get labels of one block, or of a few blocks if blocks differ in size.
    """
    rng, place = np.random.default_rng(seed), np.argsort(block, kind="stable")
    orders = []
    for _ in range(count):
        order = np.empty(len(block), dtype=np.int64)
        order[place] = np.lexsort((rng.random(len(block)), rng.permutation(int(block.max()) + 1)[block]))
        orders.append(order)
    return orders


def fit_groups(
    name: str, train: Part, validation: Part, x: Floats, groups: Sequence[int], scaled: bool, seed: int, dim: int = 0
) -> tuple[list[Floats], Floats]:
    """Return predictions [states, m, targets] of each group of targets, and their errors on the validation rows
    [groups].

    Closed forms have one state. `slp` and `mlp` have STATES, but only one for the shuffled groups after the first.
    """
    predictions, losses = fit_probe(name, train, validation, x, seed, scaled, groups, dim)
    parts = [part[None] for part in np.split(predictions, np.cumsum(groups)[:-1], axis=1)]
    if name in ("slp", "mlp"):
        first, held = ((features, targets[:, : groups[0]]) for features, targets in (train, validation))
        more = [fit_probe(name, first, held, x, seed + state, scaled) for state in range(1, STATES)]
        parts[0] = np.concatenate([parts[0], *(fit[0][None] for fit in more)])
        losses[0] = np.mean([losses[0], *(fit[1][0] for fit in more)])
    return parts, losses


def ratio_scores(errors: Floats, reference: Floats) -> Floats:
    """Return linearised contributions to 1 − Σ errors/Σ reference, exactly their mean; zeros without reference."""
    mean = float(reference.mean())
    if mean == 0:
        return np.zeros(len(errors))
    ratio = float(errors.mean()) / mean
    scores: Floats = 1 - ratio - (errors - ratio * reference) / mean
    return scores


def explained_share(errors: Floats, reference: Floats) -> float:
    """Return 1 − the mean of errors [states, n] over the mean of the reference [n]; 0 without reference."""
    mean = float(reference.mean())
    return 1 - float(errors.mean()) / mean if mean else 0.0


def state_spread(errors: Floats, reference: Floats) -> float:
    """Return the standard deviation of the score over the states of errors [states, n]."""
    return float(np.std([explained_share(state, reference) for state in errors], ddof=1))
