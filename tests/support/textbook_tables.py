"""PSRL and OPSRL as a textbook writes them: dictionaries, value iteration, a number at a time."""

import numpy as np

END = "end"


class Tables:
    """What followed every pair of a state and an action, and the rewards there."""

    def __init__(self, env, discount):
        self.states, self.actions = int(env.observation_space.n), int(env.action_space.n)
        self.discount = discount
        self.pairs = [(s, a) for a in range(self.actions) for s in range(self.states)]
        self.counts = {pair: {} for pair in self.pairs}
        self.rewards = {pair: [] for pair in self.pairs}
        self.surprises, self.exposure = [1.0] * self.actions, [1.0] * self.actions

    def observe(self, s, a, r, s2, terminated):
        outcome, n = END if terminated else s2, len(self.rewards[s, a])
        if n > 0:
            self.exposure[a] += 1 / (n + 1)
            self.surprises[a] += outcome not in self.counts[s, a]
        self.counts[s, a][outcome] = self.counts[s, a].get(outcome, 0) + 1
        self.rewards[s, a].append(r)

    def unseen(self, a):
        """c, the weight of outcomes that were never seen."""
        return self.surprises[a] / self.exposure[a]

    def totals(self):
        """All rewards, and q, the share of terminations."""
        rewards = [r for rewards in self.rewards.values() for r in rewards]
        ends = sum(seen.get(END, 0) for seen in self.counts.values())
        return rewards, ends / max(len(rewards), 1)

    def noise(self):
        """The largest variance of rewards."""
        variances = [float(np.var(r, ddof=1)) for r in self.rewards.values() if len(r) > 1]
        return max([0.0, *variances])

    def visits(self):
        return {pair: len(rewards) for pair, rewards in self.rewards.items()}


class TextbookPSRL(Tables):
    """Models drawn from the tables, and the best policies of these models."""

    def prior(self):
        """q, mu h, h range."""
        rewards, q = self.totals()
        means = [float(np.mean(r)) for r in self.rewards.values() if r] or [0.0]
        size = max(means) - min(means) or abs(means[0]) or 1.0
        h = 1 / (1 - self.discount * (1 - q))
        return q, h * float(np.mean(rewards or [0.0])), h * size

    def draw(self, rng):
        """P(s' | s, a), the end left out, and R(s, a)."""
        (q, mean, std), noise = self.prior(), self.noise()
        P = np.zeros((self.states, self.actions, self.states))
        R = np.zeros((self.states, self.actions))
        for s, a in self.pairs:
            r, z = self.rewards[s, a], rng.standard_normal()
            if not r:
                R[s, a] = mean + std * z
                continue
            R[s, a] = np.mean(r) + np.sqrt((noise + len(r) * np.var(r)) / len(r) ** 2) * z
            seen = self.counts[s, a]
            gammas = [rng.standard_gamma(n) for n in (*seen.values(), self.unseen(a))]
            *named, elsewhere = np.array(gammas) / sum(gammas)
            for outcome, probability in zip(seen, named, strict=True):
                if outcome != END:
                    P[s, a, outcome] += probability
            over, place = rng.random() < q, int(self.states * rng.random())
            if not over:
                P[s, a, place] += elsewhere
        return P, R

    def mean(self):
        """The mean of the posterior, in the form of `draw`."""
        q, mean, _ = self.prior()
        P = np.zeros((self.states, self.actions, self.states))
        R = np.full((self.states, self.actions), mean)
        for (s, a), seen in self.counts.items():
            if not seen:
                continue
            R[s, a] = np.mean(self.rewards[s, a])
            c = self.unseen(a)
            total = sum(seen.values()) + c
            P[s, a] += (1 - q) * c / total / self.states
            for outcome, n in seen.items():
                if outcome != END:
                    P[s, a, outcome] += n / total
        return P, R

    def plan(self, P, R):
        """Optimal action values of a model, shape (states, actions)."""
        values = np.zeros(self.states)
        while True:
            action_values = R + self.discount * P @ values
            change = np.abs(action_values.max(axis=1) - values).max()
            values = action_values.max(axis=1)
            if change <= 1e-13 * max(1.0, np.abs(values).max()):
                return action_values

    def walk(self, env, seed, rng, steps):
        """Learn for some steps; the actions taken."""
        s, _ = env.reset(seed=seed)
        taken = []
        due, episodes, drawn_at, before = True, 0, 0, self.visits()
        for t in range(steps):
            if due:
                Q = self.plan(*self.draw(rng))
                due, drawn_at, before = False, t, self.visits()
            a = int(Q[s].argmax())
            s2, r, terminated, truncated, _ = env.step(a)
            self.observe(s, a, float(r), s2, terminated)
            taken.append(a)
            if terminated or truncated:
                due, episodes = True, episodes + 1
                s, _ = env.reset()
                continue
            if episodes == 0:
                doubled = len(self.rewards[s, a]) >= max(2 * before[s, a], before[s, a] + 1)
                due = due or doubled or (t + 1 - drawn_at) * (1 - self.discount) >= 1
            s = s2
        return taken


class TextbookOPSRL(Tables):
    """Draws of weights of what was seen, and values by the equation of line 4."""

    def __init__(self, env, discount):
        super().__init__(env, discount)
        self.weights = {pair: {} for pair in self.pairs}
        self.unknown = {}
        self.errors = {}
        self.prior = None

    def draw(self, rng):
        for pair in self.pairs:
            self.unknown[pair], self.errors[pair] = rng.standard_normal(), rng.standard_normal()
            for outcome, n in self.counts[pair].items():
                self.weights[pair][outcome] = rng.standard_gamma(n)

    def scale(self):
        """v and S."""
        everything, q = self.totals()
        if not everything:
            return 0.0, 1.0
        horizon = 1 / (1 - self.discount * (1 - q))
        v, differences = horizon * np.mean(everything), []
        for pair, rewards in self.rewards.items():
            if rewards:
                e = self.counts[pair].get(END, 0) / len(rewards)
                better = np.mean(rewards) + self.discount * (1 - e) * v - v
                differences.append(abs(better) * (e + (1 - e) * horizon))
        size = max(abs(np.mean(rewards)) for rewards in self.rewards.values() if rewards)
        spread = max(differences)
        if spread <= 1e-9 * horizon * size:
            spread = size or 1.0
        return float(v), float(spread)

    def find_prior(self):
        """v, S, the largest variance of rewards, and c by action."""
        self.prior = (*self.scale(), self.noise(), [self.unseen(a) for a in range(self.actions)])

    def values(self, explore):
        """Q(s, a), shape (states, actions), by plain value iteration."""
        q = np.zeros((self.states, self.actions))
        for _ in range(100_000):
            after = {END: 0.0, **{s: q[s].max() for s in range(self.states)}}
            before, q = q, np.empty_like(q)
            for pair in self.pairs:
                q[pair] = self._backup(pair, after, explore)
            if np.abs(q - before).max() <= 1e-12 * max(np.abs(q).max(), 1e-300):
                break
        return q

    def _backup(self, pair, after, explore):
        rewards, n = self.rewards[pair], len(self.rewards[pair])
        v, spread, noise, concentrations = self.prior
        c = concentrations[pair[1]]
        unknown = v + spread * (3 + self.unknown[pair]) if explore else v
        if not n:
            return float(unknown)
        squares = n * np.var(rewards)
        error = np.sqrt(noise + squares) / n * self.errors[pair] if explore else 0.0
        weights = self.weights[pair] if explore else self.counts[pair]
        reward = np.mean(rewards) + error
        known = sum(w * (reward + self.discount * after[o]) for o, w in weights.items())
        return float((known + c * unknown) / (sum(weights.values()) + c))

    def walk(self, env, seed, rng, steps):
        """Learn for some steps; the actions taken."""
        s, _ = env.reset(seed=seed)
        actions, due, episodes, drawn, seen, before = [], "draw", 0, 0, [], self.visits()
        for step in range(1, steps + 1):
            if due:
                if due == "draw":
                    self.draw(rng)
                    drawn = step - 1
                if due != "plan":
                    self.find_prior()
                q, due, before = self.values(explore=True), "", self.visits()
            a = int(q[s].argmax())
            actions.append(a)
            s2, r, terminated, truncated, _ = env.step(a)
            self.observe(s, a, float(r), s2, terminated)
            outcome, weight = END if terminated else s2, rng.standard_exponential()
            self.weights[s, a][outcome] = self.weights[s, a].get(outcome, 0.0) + weight
            beyond = not seen or not min(seen) <= float(r) <= max(seen)
            seen.append(float(r))
            if terminated or truncated:
                episodes, due = episodes + 1, "draw"
                s, _ = env.reset()
                continue
            if episodes == 0 and (step - drawn) * (1 - self.discount) >= 1:
                due = "draw"
            elif beyond:
                due = "scale"
            elif len(self.rewards[s, a]) >= max(2 * before[s, a], 1):
                due = "plan"
            s = s2
        return actions
