"""``rblspi fit``: from logged transitions to values, or to a policy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import gymnasium as gym
import typer

from rblspi.cli import options
from rblspi.cli.commands import Command
from rblspi.cli.logs import Log, columns_of
from rblspi.cli.saved import POLICY, Selection, environment
from rblspi.core.progress import Tell, progress, say

if TYPE_CHECKING:
    from rblspi.data import Transitions
    from rblspi.features import Basis
    from rblspi.offline import Iteration
    from rblspi.offline.trust import TrustReport
    from rblspi.policies import LinearPolicy
    from rblspi.registry import Algorithm

#: the exit code of --strict
NOT_TRUSTED = 3
#: states in which coverage is measured
_STATES = 10_000
#: weights above which the number of actions is not simply taken from the data: 3 GB for a matrix
_MANY_WEIGHTS = 20_000


def fit(
    log: Log,
    algo: Annotated[
        str,
        typer.Option(
            help="fqi, lspi, blspi, lstd or blstd.", autocompletion=options.algorithms(online=False)
        ),
    ] = "fqi",
    env: Annotated[
        str | None,
        typer.Option(
            metavar="ENV_ID",
            show_default="the one that the data name",
            autocompletion=options.suggest(options.environments),
        ),
    ] = None,
    env_set: options.EnvironmentSettings = None,
    basis: options.BasisOption = None,
    policy: Annotated[
        Path | None,
        typer.Option(metavar="SAVED", help="Value this policy, not the one that made the data."),
    ] = None,
    set_: options.Settings = None,
    actions: Annotated[
        int | None, typer.Option(min=1, show_default="the environment's, or those in the data")
    ] = None,
    decisions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also learn from decisions that rblspi serve wrote down there."
        ),
    ] = None,
    cluster: options.Cluster = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write policy.npz there, for evaluate, watch and show."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="End with code 3 if the policy is not to be trusted.")
    ] = False,
) -> None:
    """Fit a policy (fqi, lspi, blspi) or the values of one (lstd, blstd) to logged transitions.

    A basis that is not given is chosen by held-out episodes. A policy comes with a report on
    whether the data support it.
    """
    algorithm = _algorithm(algo, policy, save)
    with ExitStack() as stack:
        named = None if env is None else environment(env, env_set)
        source = log.open(_number_of_actions(named, actions), decisions)
        named = named or _environment(log.data, source.metadata, dict(env_set or ()))
        job = _job(source, named, actions, cluster, stack)
        if not log.quiet:
            _print_report(source, job)
        estimator = _estimator(algorithm, job, basis, dict(set_ or ()))
        if actions is None and (algorithm.learns != "values" or policy is not None):
            _require_plausible_actions(estimator, job)
        if save is not None:
            save.mkdir(parents=True, exist_ok=True)  # before the work, not after it
        target = None if policy is None else Selection(policy).load(job.env).policy()
        start = time.perf_counter()
        with progress(job.size, log.quiet) as tell:
            _learn(estimator, algorithm, _Watched(job.data, tell), job, target, log.quiet)
        trust = _print_results(estimator, algorithm, job, target, time.perf_counter() - start)
        if save is not None:
            _save(estimator, job, trust, save)
        if strict and trust is not None and trust.word == "bad":
            raise typer.Exit(NOT_TRUSTED)


def _algorithm(name: str, policy: Path | None, save: Path | None) -> Algorithm:
    from rblspi.registry import algorithm

    found = algorithm(name)
    if found.online:
        raise ValueError(f"{name} learns in an environment: use rblspi train ENV_ID")
    if save is not None and (save.suffix == ".npz" or (save.exists() and not save.is_dir())):
        raise ValueError(f"--save {save} must name a folder")
    if policy is not None and found.learns != "values":
        raise ValueError(f"--policy is for lstd and blstd: {name} finds a policy of its own")
    if save is not None and found.learns == "values" and policy is None:
        raise ValueError(
            f"--save needs values of actions, but {name} without --policy gives values of states"
        )
    return found


def _learn(
    estimator: Any,
    algorithm: Algorithm,
    data: _Watched,
    job: Job,
    target: LinearPolicy | None,
    quiet: bool,
) -> None:
    if algorithm.learns == "values":
        estimator.set_params(actions=None if target is None else job.actions)
        estimator.fit(data, target)
    else:
        estimator.fit(data, callback=None if quiet else _say_iterations())


def _save(estimator: Any, job: Job, trust: TrustReport | None, folder: Path) -> None:
    """Save the policy with its trust report, and say what to do next."""
    found = estimator.policy(job.env)
    if trust is not None:
        found = replace(found, provenance={**found.provenance, "trust": trust.plain()})
    found.save(folder / POLICY)
    then = f"export {folder} policy.onnx" if job.env is None else f"evaluate {folder}"
    print(f"saved in {folder}: next, rblspi {then}")


# The data, and the environment they come from ------------------------------------------------


class Job(NamedTuple):
    """The data, and the environment they come from."""

    data: Any
    env: gym.Env[Any, Any] | None  # None: only the data are known
    observation_space: gym.Space[Any]
    actions: int
    size: int


def _job(
    source: Any,
    named: gym.Env[Any, Any] | None,
    actions: int | None,
    cluster: str | None,
    stack: ExitStack,
) -> Job:
    if named is not None:
        from rblspi.policies.linear import action_names_of

        source.actions = _number_of_actions(named, actions)
        action_names_of(named, source.actions, getattr(source, "action_names", ()))
    elif source.actions is None:
        source.actions = actions
    found: Any = source if cluster is None else _on_cluster(source, cluster, stack)
    if named is not None:
        return Job(found, named, named.observation_space, source.actions, source.size)
    from rblspi.offline.observed_space import observed_space

    space = observed_space(found)
    source.actions = source.actions or 1 + max(int(chunk.actions.max()) for chunk in source)
    return Job(found, None, space, source.actions, source.size)


def _number_of_actions(named: gym.Env[Any, Any] | None, actions: int | None) -> int | None:
    """That of the environment, or what the user says."""
    if named is None:
        return actions
    from rblspi.environments.lookup import discrete_actions

    own = int(discrete_actions(named).n)
    if actions not in (None, own):
        raise ValueError(f"--actions {actions}: {named.spec} has {own}")
    return own


def _environment(
    data: str, metadata: dict[str, Any], given: dict[str, Any]
) -> gym.Env[Any, Any] | None:
    """The environment that is named in the file, if it is registered.

    What comes from the file cannot import a module or name another file; what the user gives can.
    """
    from rblspi.environments.lookup import make_described

    name, arguments = metadata.get("environment"), metadata.get("arguments")
    if not isinstance(name, str) or name not in gym.registry or not isinstance(arguments, dict):
        if given:
            raise ValueError(f"--env-set needs an environment, but {data} names none: give --env")
        return None
    arguments = {argument: value for argument, value in arguments.items() if value is not None}
    limit = arguments.pop("max_episode_steps", gym.registry[name].max_episode_steps)
    described = {"id": name, "arguments": arguments, "limit": limit, "wrappers": []}
    try:
        return make_described(described, given)
    except ValueError as error:
        raise ValueError(f"{data}: {error}") from error


def _on_cluster(source: Any, address: str, stack: ExitStack) -> Any:
    from rblspi.core.cluster import dask_client
    from rblspi.data import DaskData

    if not hasattr(source, "partitions"):
        raise ValueError("--cluster needs files: it does not work with minari:NAME")
    return DaskData(source, stack.enter_context(dask_client(address)))


def _estimator(algorithm: Algorithm, job: Job, basis: str | None, settings: dict[str, Any]) -> Any:
    from rblspi.features import basis_from_text

    algorithm.require_settings(settings)
    chosen = None if basis is None else basis_from_text(basis)
    if chosen is None and algorithm.learns == "values":
        chosen = _default_basis(job)
    space = job.observation_space
    return algorithm.load()(chosen, job.actions, observation_space=space, **settings)


def _require_plausible_actions(estimator: Any, job: Job) -> None:
    """Raise an error if the actions in the data would need an implausible number of weights."""
    basis = estimator.basis or _default_basis(job)
    features = basis.build(job.observation_space).size
    weights = job.actions * features
    if job.env is None and weights > _MANY_WEIGHTS:
        raise ValueError(
            f"the largest action in the data is {job.actions - 1:,}: {job.actions:,} actions with "
            f"{features:,} features need {weights:,} weights; if the action column is right, give "
            "--actions"
        )


def _default_basis(job: Job) -> Basis:
    """The default basis, scaled to the data where the environment has no bounds."""
    from rblspi.environments.spaces import input_size
    from rblspi.features import default_basis
    from rblspi.offline.accumulation import not_empty
    from rblspi.offline.model_selection import first_rows

    first = not_empty(next(iter(job.data), None), job.data)
    found, size = first.observations[0].size, input_size(job.observation_space)
    if found != size:
        raise ValueError(
            f"an observation of the data has {found} numbers, of the environment {size}: correct "
            "--env or --columns"
        )
    scout = lambda: first_rows(job.data).observations.reshape(-1, size)  # noqa: E731
    return default_basis(job.observation_space, scout)


# What is seen meanwhile ---------------------------------------------------------------------


class _Watched:
    """Data that tell how far a pass over them has come; otherwise they are as before."""

    def __init__(self, data: Any, tell: Tell) -> None:
        self._data, self._tell = data, tell
        self._passes, self._rows = 0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._data, name)

    def __iter__(self) -> Iterator[Transitions]:
        self._begin()
        yield from self._counted(self._data)

    def map_partitions(self, work: Callable[[Iterable[Transitions]], Any]) -> Iterator[Any]:
        """Work on the partitions; those on a cluster are counted when they are done."""
        self._begin()
        if not hasattr(self._data, "map_partitions"):
            yield work(self._counted(self._data))
        elif hasattr(self._data, "client"):
            for i, result in enumerate(self._data.map_partitions(work)):
                self._count(self._data.data[i].size)
                yield result
        else:
            yield from self._data.map_partitions(lambda part: work(self._counted(part)))

    def _begin(self) -> None:
        self._passes, self._rows = self._passes + 1, 0
        self._count(0)

    def _count(self, rows: int) -> None:
        self._rows += rows
        self._tell(self._rows, f"pass {self._passes}, {self._rows:,} transitions")

    def _counted(self, chunks: Iterable[Transitions]) -> Iterator[Transitions]:
        for chunk in chunks:
            yield chunk
            self._count(chunk.size)


def _say_iterations() -> Callable[[Iteration], None]:
    """A line on the terminal for every iteration."""
    numbers = count(1)

    def tell(iteration: Iteration) -> None:
        what = (
            f"{iteration.changed:,} next actions changed"
            if iteration.mixed == 1
            else f"a mixture of {iteration.mixed} policies that went in a cycle"
        )
        say(f"iteration {next(numbers)}: {what}, weights by a share of {iteration.change:.2g}")

    return tell


# What is said afterwards --------------------------------------------------------------------


def _print_report(source: Any, job: Job) -> None:
    from rblspi.offline import data_report

    print(columns_of(source))
    print(data_report(job.data))


def _print_results(
    estimator: Any, algorithm: Algorithm, job: Job, target: LinearPolicy | None, seconds: float
) -> TrustReport | None:
    """Print all that is known of the result; returns the report on a policy."""
    _print_fit(estimator, job, seconds)
    if target is not None:
        _print_value(estimator, job, target)
    if hasattr(estimator, "posterior_") and hasattr(estimator, "act"):
        _print_coverage(estimator, job)
    return None if algorithm.learns == "values" else _trust(estimator, job)


def _print_fit(estimator: Any, job: Job, seconds: float) -> None:
    print(
        f"{type(estimator).__name__}: {int(estimator.statistics_.count.sum()):,} transitions, "
        f"{len(estimator.weights_)} weights, rank {estimator.rank_}, {seconds:.1f} s"
    )
    if hasattr(estimator, "n_iter_"):
        ending = "converged" if estimator.converged_ else "did not converge"
        if estimator.cycle_:
            ending = f"ended in a cycle of {estimator.cycle_} policies"
        what = "fitted Q iteration" if hasattr(estimator, "limits_") else "policy iteration"
        print(f"{what} {ending} after {estimator.n_iter_} iterations")
    if getattr(estimator, "selection_", None) is not None:
        from rblspi.features import basis_to_text

        chosen, tried = estimator.selection_.basis, len(estimator.selection_.candidates)
        best = f"the best of {tried} by held-out episodes"
        how = best if tried > 1 else "the default for these data"
        print(f"basis: {basis_to_text(chosen)}, {how}")
    bad = getattr(job.data, "bad", None)
    if bad is not None and bad.count:
        print(bad)


def _print_value(estimator: Any, job: Job, policy: Any) -> None:
    from rblspi.offline import policy_value

    priors = ("prior_precision", "noise_precision")  # which LSTD does not have
    settings = {name: getattr(estimator, name) for name in priors if hasattr(estimator, name)}
    value = policy_value(
        job.data,
        policy,
        estimator.basis,
        job.actions,
        discount=estimator.discount,
        ridge=estimator.ridge,
        observation_space=job.observation_space,
        **settings,
    )
    print(f"value of the policy in its first states: {value}")


def _print_coverage(estimator: Any, job: Job) -> None:
    """Coverage of the states that the policy visits; without an environment, of next states."""
    from rblspi.offline import coverage

    if job.env is None:
        where, states = "next in the data", next(iter(job.data)).next_observations[:_STATES]
    else:
        from rblspi.rollout import collect
        from rblspi.rollout.evaluate import greedy_act

        act = greedy_act(estimator.policy(job.env))
        visited = next(collect(job.env, _STATES, act, seed=0))
        where, states = "visited by the policy", visited.observations
    print(f"coverage, {where}: {coverage(estimator, states)}")


def _trust(estimator: Any, job: Job) -> TrustReport:
    from rblspi.offline import trust

    report = trust(
        estimator.policy(),
        job.data,
        estimator.basis_,
        discount=estimator.discount,
        values=estimator.predict,
        converged=estimator.converged_,
        observation_space=job.observation_space,
    )
    print(report)
    return report


COMMAND = Command(fit, "logs.parquet --set discount=0.95 --save runs/logs")
