"""Agents that plan on all they remember, as a textbook writes them: loops, `inv`, a row at a time.

A learner has ``plan(data)``, which returns a function from an observation to an action; data are
lists of (s, a, r, s', terminated).
"""

import numpy as np


def walk(env, seed, act, plan, steps):
    """The actions of some steps; a plan after every episode, and after a tenth more steps."""
    data = []
    actions, planned = [], 0
    s, _ = env.reset(seed=seed)
    for t in range(1, steps + 1):
        a = act(s)
        after, r, terminated, truncated, _ = env.step(a)
        data.append((s, a, float(r), after, terminated))
        actions.append(a)
        s = after
        if terminated or truncated:
            s, _ = env.reset()
        if terminated or truncated or t >= planned + max(1, int(0.1 * planned)):
            act, planned = plan(data), t
    return actions, data


def value_scale(data, discount):
    """The centre and the spread of values."""
    rewards = [r for _, _, r, _, _ in data]
    mean, q = np.mean(rewards), np.mean([end for *_, end in data])
    horizon = 1 / (1 - discount * (1 - q))
    centre = horizon * mean
    spread = max(abs(r - centre) if end else horizon * abs(r - mean) for _, _, r, _, end in data)
    if spread <= 1e-9 * abs(centre):
        spread = abs(mean) or 1.0
    return float(centre), float(spread)


class Learner:
    """Features, actions, a discount, and the weights of the last plan by action."""

    def __init__(self, phi, constant, weights, discount):
        self.phi, self.constant, self.discount = phi, constant, discount
        self.weights = weights
        self.actions, self.n = weights.shape

    def greedy(self, s):
        return int(np.argmax(self.weights @ self.phi(s)))

    def inverses(self, data, penalty):
        """(sum x x' + lambda I)^-1 by action."""
        matrices = [penalty * np.eye(self.n) for _ in range(self.actions)]
        for s, a, *_ in data:
            matrices[a] = matrices[a] + np.outer(self.phi(s), self.phi(s))
        return [np.linalg.inv(matrix) for matrix in matrices]


class TextbookLSVIUCB(Learner):
    """Lines 1 to 6 of LSVI-UCB."""

    penalty = (0.1 / 3) ** 2

    def plan(self, data):
        centre, spread = value_scale(data, self.discount)
        beta, inverses = 0.1 * spread, self.inverses(data, self.penalty)

        def bonus(s, a):
            return float(beta * np.sqrt(self.phi(s) @ inverses[a] @ self.phi(s)))

        bonuses = [[bonus(s2, a) for a in range(self.actions)] for *_, s2, _ in data]
        targets = np.full(len(data), np.inf)
        while True:
            before, targets = targets, np.empty(len(data))
            for i, (_, _, r, s2, end) in enumerate(data):
                value = max(self.weights @ self.phi(s2) + bonuses[i])
                value = min(max(value, centre - 3 * spread), centre + 3 * spread)
                targets[i] = r if end else r + self.discount * value
            if max(abs(targets - before)) <= (1 - self.discount) * 0.01 * spread:
                break
            sums = [self.penalty * centre * self.constant for _ in range(self.actions)]
            for (s, a, *_), target in zip(data, targets, strict=True):
                sums[a] = sums[a] + self.phi(s) * target
            self.weights = np.array([m @ b for m, b in zip(inverses, sums, strict=True)])
        self.bonus = bonus
        return lambda s: int(
            np.argmax([self.weights[a] @ self.phi(s) + bonus(s, a) for a in range(self.actions)])
        )


class TextbookRmaxLSPI(Learner):
    """Lines 1 to 16 of Rmax-LSPI, with values counted from the centre."""

    penalty = 0.01

    def __init__(self, *arguments, visits):
        super().__init__(*arguments)
        self.visits = visits

    def plan(self, data):
        centre, spread = value_scale(data, self.discount)
        inverses, k = self.inverses(data, self.penalty), self.actions * self.n

        def known(s, a):
            return bool(1 / (self.phi(s) @ inverses[a] @ self.phi(s)) >= self.visits)

        def pair(s, a):
            out = np.zeros((self.actions, self.n))
            out[a] = self.phi(s)
            return out.ravel()

        everything = range(self.actions)
        theta, before = (self.weights - centre * self.constant).ravel(), None
        for _ in range(20):
            pi = [
                int(np.argmax(theta.reshape(self.actions, -1) @ self.phi(s2))) for *_, s2, _ in data
            ]
            A, b, used = self.penalty * np.eye(k), np.zeros(k), []
            for (s, a, r, s2, end), next_action in zip(data, pi, strict=True):
                for other in everything:
                    if not known(s, other):
                        z = pair(s, other)
                        A, b = A + np.outer(z, z), b + z * 3 * spread
                if not known(s, a):
                    continue
                x, reward = pair(s, a), r - centre + (0 if end else self.discount * centre)
                if not end and not all(known(s2, other) for other in everything):
                    A, b = A + np.outer(x, x), b + x * (reward + self.discount * 3 * spread)
                else:
                    y = 0 * x if end else pair(s2, next_action)
                    A, b = A + np.outer(x, x - self.discount * y), b + x * reward
                    used.append(None if end else next_action)
            if used == before:
                break
            theta, before = np.linalg.inv(A) @ b, used
        self.weights = theta.reshape(self.actions, -1) + centre * self.constant
        return self.greedy


class TextbookLBRL(Learner):
    """Lines 1 to 5 of LBRL, from given planning states, with `inv` and plain Bartlett draws."""

    penalty = 0.01

    def __init__(self, *arguments, low, high, states, rng):
        super().__init__(*arguments)
        self.low, self.high, self.states, self.rng = low, high, states, rng

    def inputs(self, s):
        scaled = 2 * (s - self.low) / (self.high - self.low) - 1
        return np.concatenate([[1.0], scaled, self.phi(s)])

    def draw_models(self, data, mean, unit):
        models = []
        for a in range(self.actions):
            X = np.array([self.inputs(s) for s, action, *_ in data if action == a])
            Y = [np.array([*(s2 - s), r, end]) for s, b, r, s2, end in data if b == a]
            X = X.reshape(len(Y), -1) if Y else np.zeros((0, 1 + len(mean) - 2 + self.n))
            Y = (
                (np.array(Y).reshape(len(X), -1) - mean) / unit
                if len(X)
                else np.zeros((0, len(mean)))
            )
            p, d = X.shape[1], len(mean)
            K = 0.01 * np.eye(p) + X.T @ X
            M = np.linalg.inv(K) @ X.T @ Y
            Psi = 0.1**2 * np.eye(d) + Y.T @ Y - M.T @ K @ M
            nu = d + 2 + len(X)
            L = np.zeros((d, d))
            chis = [self.rng.chisquare(nu - i) for i in range(d)]
            normals = self.rng.standard_normal((d, d))
            for i in range(d):
                L[i, i] = np.sqrt(chis[i])
                L[i, :i] = normals[i, :i]
            T = np.linalg.cholesky(Psi) @ np.linalg.inv(L.T)  # V = T T'
            Z = self.rng.standard_normal((p, d))
            # Any root of K^-1 will do; this one is the agent's.
            models.append((M + np.linalg.inv(np.linalg.cholesky(K).T) @ Z @ T.T, T))
        return models

    def plan(self, data):
        outputs = np.array([[*(s2 - s), r, end] for s, _, r, s2, end in data])
        mean, unit = outputs.mean(axis=0), outputs.std(axis=0)
        unit = np.array([u or abs(m) or 1.0 for u, m in zip(unit, mean, strict=True)])
        models = self.draw_models(data, mean, unit)
        rows = np.linspace(0, len(data) - 1, min(self.states, len(data))).astype(int)
        start = [data[i][0] for i in rows] + list(self.lattice())
        noise = self.rng.standard_normal((self.actions, len(start), len(mean)))
        low = min(outputs[:, -2].min(), mean[-2] - 3 * unit[-2])
        high = max(outputs[:, -2].max(), mean[-2] + 3 * unit[-2])
        simulated = []
        for a, (B, T) in enumerate(models):
            for s, e in zip(start, noise[a], strict=True):
                out = mean + unit * (self.inputs(s) @ B + T @ e)
                after = np.minimum(np.maximum(s + out[:-2], self.low), self.high)
                stop = min(max(out[-1], 0), 1)
                simulated.append((s, a, min(max(out[-2], low), high), after, stop))
        self.values_of(simulated, *value_scale(data, self.discount))
        return self.greedy

    def lattice(self):
        """In two dimensions, by the plastic number g^3 = g + 1."""
        g = 1.32471795724474602596
        for i in range(1, self.states + 1):
            place = np.array([(0.5 + i / g) % 1, (0.5 + i / g**2) % 1])
            yield self.low + (self.high - self.low) * place

    def values_of(self, simulated, centre, spread):
        inverses = self.inverses(simulated, self.penalty)
        targets = np.full(len(simulated), np.inf)
        while True:
            before, targets = targets, np.empty(len(simulated))
            for i, (_, _, r, s2, stop) in enumerate(simulated):
                value = max(self.weights @ self.phi(s2))
                value = min(max(value, centre - 3 * spread), centre + 3 * spread)
                targets[i] = r + self.discount * (1 - stop) * value
            if max(abs(targets - before)) <= (1 - self.discount) * 0.01 * spread:
                break
            sums = [self.penalty * centre * self.constant for _ in range(self.actions)]
            for (s, a, *_), target in zip(simulated, targets, strict=True):
                sums[a] = sums[a] + self.phi(s) * target
            self.weights = np.array([m @ b for m, b in zip(inverses, sums, strict=True)])
