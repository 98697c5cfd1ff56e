"""``rblspi fit``: from logged transitions to values, or to a policy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import gymnasium as gym
import typer

from rblspi.cli import options
from rblspi.cli.commands import Command
from rblspi.cli.options import Log
from rblspi.cli.saved import POLICY, Selection, environment
from rblspi.core.progress import Tell, progress
from rblspi.data import DaskData, Dataset, MinariData

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
#: weights above which --actions is required, against a wrong action column: 3 GB for a matrix
_MANY_WEIGHTS = 20_000


def fit(
    log: Log,
    algo: Annotated[
        str,
        typer.Option(
            help="fqi, lspi, blspi, lstd, blstd or gptd.",
            autocompletion=options.algorithms(online=False),
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
    """Fit a policy (fqi, lspi, blspi) or the values of one (lstd, blstd, gptd) to a log.

    A basis that is not given is chosen by held-out episodes. A policy comes with a report on
    whether the data support it.
    """
    algorithm = _algorithm(algo, policy, save)
    settings = dict(set_ or ())
    algorithm.require_settings(settings)
    named = None if env is None else environment(env, env_set)
    source = log.open(_number_of_actions(named, actions), decisions)
    named = named or _environment(log.data, source.facts.metadata, dict(env_set or ()))
    with ExitStack() as stack:
        data = source if cluster is None else _on_cluster(source, cluster, stack)
        space = _observation_space(source, data, named, actions)
        if not log.quiet:
            from rblspi.offline import data_report

            print(source)
            print(data_report(data))
        estimator = algorithm.load()(
            _basis(basis, algorithm, data, space),
            source.actions if algorithm.learns == "policy" or policy is not None else None,
            observation_space=space,
            **settings,
        )
        if named is None and actions is None:
            _require_plausible_actions(estimator, data)
        if save is not None:
            save.mkdir(parents=True, exist_ok=True)  # before the work, not after it
        target = None if policy is None else Selection(policy).load(named).policy()
        start = time.perf_counter()
        with progress(source.size, log.quiet) as tell:
            watched = _Watched(data, tell)
            if algorithm.learns == "values":
                estimator.fit(watched, target)
            else:
                estimator.fit(watched, callback=watched.count_iteration)
        _print_fit(estimator, data, time.perf_counter() - start)
        if target is not None:
            _print_value(estimator, data, target)
        if hasattr(estimator, "posterior_") and hasattr(estimator, "act"):
            _print_coverage(estimator, data, named)
        report = None if algorithm.learns == "values" else _trust(estimator, data)
        if save is not None:
            _save(estimator, named, report, save)
        if strict and report is not None and report.word == "bad":
            raise typer.Exit(NOT_TRUSTED)


def _algorithm(name: str, policy: Path | None, save: Path | None) -> Algorithm:
    from rblspi.registry import algorithm

    found = algorithm(name)
    if found.online:
        raise ValueError(f"{name} learns in an environment: use rblspi train ENV_ID")
    if save is not None and (save.suffix == ".npz" or (save.exists() and not save.is_dir())):
        raise ValueError(f"--save {save} must name a folder")
    if policy is not None and found.learns != "values":
        raise ValueError(f"--policy is for lstd, blstd and gptd: {name} finds a policy of its own")
    if save is not None and found.learns == "values" and policy is None:
        raise ValueError(
            f"--save needs values of actions, but {name} without --policy gives values of states"
        )
    return found


# The environment and its actions --------------------------------------------------------------


def _number_of_actions(env: gym.Env[Any, Any] | None, actions: int | None) -> int | None:
    """The number of actions of the environment, or the number that was typed."""
    if env is None:
        return actions
    from rblspi.environments.actions import action_set

    own = action_set(env.action_space).count
    if actions not in (None, own):
        raise ValueError(f"--actions {actions}: {env.spec} has {own}")
    return own


def _environment(
    data: str, metadata: dict[str, Any], given: dict[str, Any]
) -> gym.Env[Any, Any] | None:
    """The environment that is named in the file, if it is registered.

    The file cannot import a module or name another file; the arguments that the user gives can.
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


def _on_cluster(source: Dataset, address: str, stack: ExitStack) -> DaskData:
    from rblspi.core.cluster import dask_client

    if isinstance(source, MinariData):
        raise ValueError("--cluster needs files: it does not work with minari:NAME")
    return DaskData(source, stack.enter_context(dask_client(address)))


def _observation_space(
    source: Dataset, data: Dataset, env: gym.Env[Any, Any] | None, actions: int | None
) -> gym.Space[Any]:
    """The space of the observations; the number of actions is set in the source."""
    if env is None:
        from rblspi.offline.problem import observed_space

        space = observed_space(data)
        seen = source.actions or actions
        source.limit_actions(seen or 1 + max(int(chunk.actions.max()) for chunk in source))
        return space
    from rblspi.data.encoding import points_of
    from rblspi.policies.linear import action_names_of

    own = _number_of_actions(env, actions) or 1
    source.limit_actions(own)
    if not points_of(source.action_names):
        action_names_of(env, own, tuple(map(str, source.action_names)))
    return env.observation_space


def _basis(text: str | None, algorithm: Algorithm, data: Any, space: gym.Space[Any]) -> Any:
    """The basis that was typed; else the default for values, and the best one for a policy."""
    if text is None:
        return _default_basis(data, space) if algorithm.learns == "values" else None
    from rblspi.features import basis_from_text

    return basis_from_text(text)


def _default_basis(data: Any, space: gym.Space[Any]) -> Basis:
    """The default basis, scaled to the data where the environment has no bounds."""
    from rblspi.environments.spaces import input_size
    from rblspi.features import default_basis
    from rblspi.offline.accumulation import first_chunks, first_rows

    first = first_chunks(data, 1)[0]
    found, size = first.observations[0].size, input_size(space)
    if found != size:
        raise ValueError(
            f"an observation of the data has {found} numbers, of the environment {size}: correct "
            "--env or --columns"
        )
    return default_basis(space, lambda: first_rows(data).observations.reshape(-1, size))


def _require_plausible_actions(estimator: Any, data: Any) -> None:
    """Raise an error if the actions in the data would need an implausible number of weights."""
    actions = estimator.actions or 1
    basis = estimator.basis or _default_basis(data, estimator.observation_space)
    features = basis.build(estimator.observation_space).size
    if actions > 1 and actions * features > _MANY_WEIGHTS:
        raise ValueError(
            f"the largest action in the data is {actions - 1:,}: {actions:,} actions with "
            f"{features:,} features need {actions * features:,} weights; if the action column is "
            "right, give --actions"
        )


# Progress -----------------------------------------------------------------------------------------


class _Watched(Dataset):
    """Data that report the progress of a pass over them."""

    def __init__(self, data: Dataset, tell: Tell) -> None:
        super().__init__(data.facts)
        self._data, self._tell, self._passes = data, tell, 0
        self._iterations, self._said = 0, ""

    def __iter__(self) -> Iterator[Transitions]:
        return iter(self._data)

    def map_partitions(self, work: Callable[[Iterable[Transitions]], Any]) -> Iterator[Any]:
        """Work on the partitions, which are counted when they are done."""
        self._passes, rows = self._passes + 1, 0
        results = self._data.map_partitions(work)
        for part, result in zip(self._data.partitions(), results, strict=True):
            rows += getattr(part, "size", 0)
            self._tell(rows, f"pass {self._passes}, {rows:,} transitions{self._said}")
            yield result
        self.bad = self._data.bad

    def count_iteration(self, iteration: Iteration) -> None:
        """Say what an iteration has changed, until the next one is done."""
        what = f"{iteration.changed:,} next actions changed"
        if iteration.mixed > 1:
            what = f"a mixture of {iteration.mixed} policies that went in a cycle"
        self._iterations += 1
        self._said = f", iteration {self._iterations}: {what}, weights by {iteration.change:.2g}"


# Report -------------------------------------------------------------------------------------------


def _print_fit(estimator: Any, data: Any, seconds: float) -> None:
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
    if data.bad.count:
        print(data.bad)


def _print_value(estimator: Any, data: Any, policy: LinearPolicy) -> None:
    from rblspi.offline import policy_value

    names = ("ridge", "prior_precision", "noise_precision")  # of which LSTD has the first
    value = policy_value(
        data,
        policy,
        estimator.basis,
        estimator.actions,
        discount=estimator.discount,
        observation_space=estimator.observation_space,
        **{name: getattr(estimator, name) for name in names if hasattr(estimator, name)},
    )
    print(f"value of the policy in its first states: {value}")


def _print_coverage(estimator: Any, data: Any, env: gym.Env[Any, Any] | None) -> None:
    """Coverage of the states that the policy visits; without an environment, of next states."""
    from rblspi.offline import coverage

    if env is None:
        where, states = "next in the data", next(iter(data)).next_observations[:_STATES]
    else:
        from rblspi.rollout import collect
        from rblspi.rollout.evaluate import act_of

        visited = next(collect(env, _STATES, act_of(estimator.policy(env)), seed=0))
        where, states = "visited by the policy", visited.observations
    print(f"coverage, {where}: {coverage(estimator, states)}")


def _trust(estimator: Any, data: Any) -> TrustReport:
    from rblspi.offline import trust

    report = trust(
        estimator.policy(),
        data,
        estimator.basis_,
        discount=estimator.discount,
        values=estimator.predict,
        converged=estimator.converged_,
        observation_space=estimator.observation_space,
    )
    print(report)
    return report


def _save(
    estimator: Any, env: gym.Env[Any, Any] | None, report: TrustReport | None, folder: Path
) -> None:
    """Save the policy with its trust report, and say what to do next."""
    found = estimator.policy(env)
    if report is not None:
        found = replace(found, provenance={**found.provenance, "trust": report.plain()})
    found.save(folder / POLICY)
    then = f"export {folder} policy.onnx" if env is None else f"evaluate {folder}"
    print(f"saved in {folder}: next, rblspi {then}")


COMMAND = Command(fit, "logs.parquet --set discount=0.95 --save runs/logs")
