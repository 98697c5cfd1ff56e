"""``rblspi fit``: from logged transitions to values, or to a policy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import gymnasium as gym
import typer

from rblspi.cli import words

if TYPE_CHECKING:
    from rblspi.agents import Agent
    from rblspi.estimators import Iteration
    from rblspi.features import Basis
    from rblspi.transitions import Transitions

ALGORITHMS = ("lspi", "blspi", "lstd", "blstd")

#: states of the greedy policy that coverage is measured in
_VISITS = 10_000


def fit(
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="A .parquet file, a folder of them, or minari:NAME."),
    ],
    algo: Annotated[str, typer.Option(help="lspi, blspi, lstd or blstd.")] = "lspi",
    env: Annotated[
        str | None,
        typer.Option(
            metavar="ENV_ID",
            help="Where the policy is going to act.",
            show_default="the one the data name, if they do",
        ),
    ] = None,
    basis: Annotated[
        str | None,
        typer.Option(
            help='rbf:8, "RBFGrid(8, width=0.5)", ...: see rblspi list.',
            show_default="chosen for the observations",
        ),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            metavar="AGENT",
            help="For lstd and blstd: value this agent's policy, not the one that made the data.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting: discount, pessimism, ..."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Which columns hold what: state=x+v,action=a,reward=r,next_state=...",
            show_default="the usual names",
        ),
    ] = None,
    actions: Annotated[
        int | None, typer.Option(min=1, show_default="the environment's, or those in the data")
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave bad rows out, and count them.")
    ] = False,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Of a Dask scheduler to work on.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE.npz", help="For evaluate, watch and show."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Fit a policy (lspi, blspi) or the values of one (lstd, blstd) to logged transitions."""
    if algo not in ALGORITHMS:
        raise ValueError(f"no algorithm is called {algo!r}: {words.nearest(algo, ALGORITHMS)}")
    if save is not None and save.suffix != ".npz":
        raise ValueError(f"--save {save} must end in .npz")
    evaluation = algo.endswith("lstd")
    if policy is not None and not evaluation:
        raise ValueError(f"--policy is for lstd and blstd: {algo} finds a policy of its own")
    if save is not None and evaluation and policy is None:
        raise ValueError(
            f"--save needs values of actions, but {algo} without --policy gives values of states"
        )
    job = _job(data, env, actions, columns, skip_bad, cluster)
    chosen = words.basis(basis) or _usual_basis(job)
    estimator = _estimator(algo, job, chosen, words.assignments("--set", set_ or []))
    if save is not None:
        save.parent.mkdir(parents=True, exist_ok=True)  # before the work, not after it
    start = time.perf_counter()
    with bar_of_rows(job.size, quiet) as tell:
        watched = Watched(job.data, tell)
        if evaluation:
            own = job.environment if job.simulated else None
            target = None if policy is None else _policy(words.load_agent(policy, own))
            estimator.set_params(actions=None if target is None else job.actions)
            estimator.fit(watched, target)
        else:
            estimator.fit(watched, callback=None if quiet else _teller())
    _report(estimator, job, time.perf_counter() - start)
    if evaluation and policy is not None:
        _report_value(estimator, job, target)
    if algo == "blspi":
        _report_coverage(estimator, job)
    if save is not None:
        agent = _as_agent(estimator, job, chosen, algo)
        agent.save(save)
        print(f"{save}: next, rblspi evaluate {save}")


# What to fit to -----------------------------------------------------------------------------


class Job(NamedTuple):
    """The data, and the environment they stand for."""

    data: Any
    environment: gym.Env[Any, Any]
    actions: int
    size: int
    simulated: bool  # whether the environment can be tried


def _job(
    data: str,
    env: str | None,
    actions: int | None,
    columns: str | None,
    skip_bad: bool,
    cluster: str | None,
) -> Job:
    source = _open(data, columns, skip_bad)
    named = _named_environment(env, source.metadata)
    if named is not None:
        if not isinstance(named.action_space, gym.spaces.Discrete):
            raise ValueError(f"the actions {named.action_space} are not discrete")
        own = int(named.action_space.n)
        if actions not in (None, own):
            raise ValueError(f"--actions {actions}: {named.spec} has {own}")
        source.actions = own
    elif source.actions is None:
        source.actions = actions
    found: Any = source if cluster is None else _on_cluster(source, cluster)
    if named is not None:
        return Job(found, named, source.actions, source.size, True)
    from rblspi.datasets.logged import logged_environment
    from rblspi.estimators.passes import observed_space

    source.actions = source.actions or _count_actions(source)
    environment = logged_environment(observed_space(found), source.actions)
    return Job(found, environment, source.actions, source.size, False)


def _open(data: str, columns: str | None, skip_bad: bool) -> Any:
    from rblspi.datasets import Columns, MinariData, ParquetData

    if data.startswith("minari:"):
        if columns is not None or skip_bad:
            raise ValueError("--columns and --skip-bad are for tables: leave them out")
        return MinariData(data.removeprefix("minari:"))
    names = None if columns is None else Columns.from_text(columns)
    return ParquetData(data, names, skip_bad=skip_bad)


def _named_environment(env: str | None, metadata: dict[str, Any]) -> gym.Env[Any, Any] | None:
    """The environment of the command line, or the one in the file if it is registered.

    A name in a file cannot import a module.
    """
    if env is not None:
        return words.environment(env)
    name, arguments = metadata.get("environment"), metadata.get("arguments")
    if not isinstance(name, str) or name not in gym.registry or not isinstance(arguments, dict):
        return None
    return words.environment(name, **arguments)


def _count_actions(source: Iterable[Transitions]) -> int:
    return 1 + max(int(chunk.actions.max()) for chunk in source)


def _on_cluster(source: Any, address: str) -> Any:
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError('--cluster needs Dask: pip install "rblspi[cluster]"') from error
    from rblspi.estimators import OnCluster

    if not hasattr(source, "parts"):
        raise ValueError("--cluster needs files: it does not work with minari:NAME")
    return OnCluster(source, Client(address))


def _usual_basis(job: Job) -> Basis:
    """The default one, scaled to the data where the environment has no bounds."""
    from rblspi.features import default_basis

    return default_basis(job.environment.observation_space, lambda: _first_observations(job))


def _first_observations(job: Job) -> Any:
    """The observations of the first chunks, shape (N, d)."""
    import numpy as np

    from rblspi.features.bounds import input_size

    size = input_size(job.environment.observation_space)
    chunks: list[Any] = []
    for chunk in job.data:
        chunks.append(np.reshape(chunk.observations, (chunk.size, -1)))
        if chunks[-1].shape[1] != size:
            raise ValueError(
                f"an observation of the data has {chunks[-1].shape[1]} numbers, of the environment "
                f"{size}: correct --env or --columns"
            )
        if sum(map(len, chunks)) >= _VISITS:
            break
    if not chunks:
        raise ValueError("the data have no rows to choose a basis by: give one with --basis")
    return np.concatenate(chunks)


def _estimator(algo: str, job: Job, basis: Basis, settings: dict[str, Any]) -> Any:
    from rblspi import estimators

    kind = getattr(estimators, algo.upper())
    built = kind(basis, job.actions, observation_space=job.environment.observation_space)
    own = {"basis", "actions", "observation_space", "initial_policy"}
    known = [name for name in built.get_params() if name not in own]
    for name in settings:
        if name not in known:
            raise ValueError(f"{algo} has no setting {name!r}: {words.nearest(name, known)}")
    return built.set_params(**settings)


def _policy(agent: Agent) -> Callable[[Any], Any]:
    """What an agent does in a batch of observations, its actions counted from 0."""
    start = int(agent.env.action_space.start)  # type: ignore[attr-defined]
    return lambda observations: agent.predict(observations, deterministic=True)[0] - start


# What is seen meanwhile ---------------------------------------------------------------------


class Watched:
    """Data that tell how far a pass over them has come."""

    def __init__(self, data: Any, tell: Callable[[int, str], None]) -> None:
        self.data = data
        self.tell = tell
        self.passes = 0

    def __iter__(self) -> Iterator[Transitions]:
        """Go through the chunks."""
        self.passes += 1
        yield from self._counted(self.data)

    def map_parts(self, work: Callable[[Iterable[Transitions]], Any]) -> Iterator[Any]:
        """Go through the parts; those on a cluster are counted when they are done."""
        self.passes += 1
        self.tell(0, f"pass {self.passes}")
        if not hasattr(self.data, "map_parts"):
            yield work(self._counted(self.data))
        elif hasattr(self.data, "client"):
            for i, result in enumerate(self.data.map_parts(work)):
                self.tell(self.data.data[i].size, f"pass {self.passes}")
                yield result
        else:
            yield from self.data.map_parts(lambda part: work(self._counted(part)))

    def _counted(self, chunks: Iterable[Transitions]) -> Iterator[Transitions]:
        for chunk in chunks:
            yield chunk
            self.tell(chunk.size, f"pass {self.passes}")


@contextmanager
def bar_of_rows(total: int, quiet: bool) -> Iterator[Callable[[int, str], None]]:
    """A bar over so many rows; a new word begins a new one."""
    if quiet:
        yield lambda rows, word: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(24),
        TaskProgressColumn(),
        TextColumn("{task.completed:,.0f} rows"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)

        def tell(rows: int, word: str) -> None:
            if bar.tasks[task].description != word:
                bar.reset(task, description=word, total=total)
            bar.advance(task, rows)

        yield tell


def _teller() -> Callable[[Iteration], None]:
    """A line on the terminal for every iteration."""
    count = 0

    def tell(iteration: Iteration) -> None:
        nonlocal count
        count += 1
        what = (
            f"{iteration.changed:,} next actions changed"
            if iteration.mixed == 1
            else f"a mixture of {iteration.mixed} policies that ran in a circle"
        )
        typer.echo(f"iteration {count}: {what}, weights by {iteration.change:.2g}", err=True)

    return tell


# What is said afterwards --------------------------------------------------------------------


def _report(estimator: Any, job: Job, seconds: float) -> None:
    print(
        f"{type(estimator).__name__}: {int(estimator.statistics_.count.sum()):,} transitions, "
        f"{len(estimator.weights_)} weights, rank {estimator.rank_}, {seconds:.1f} s"
    )
    if hasattr(estimator, "n_iter_"):
        ending = "converged" if estimator.converged_ else "did not converge"
        if estimator.cycle_:
            ending = f"ended in a circle of {estimator.cycle_} policies"
        print(f"policy iteration {ending} after {estimator.n_iter_} iterations")
    bad = getattr(job.data, "bad", None)
    if bad is not None and bad.count:
        print(bad)


def _report_value(estimator: Any, job: Job, policy: Any) -> None:
    from rblspi.estimators import policy_value

    value = policy_value(
        job.data,
        policy,
        estimator.basis,
        job.actions,
        discount=estimator.discount,
        ridge=estimator.ridge,
        observation_space=job.environment.observation_space,
    )
    print(f"value of the policy in its first states: {value}")


def _report_coverage(estimator: Any, job: Job) -> None:
    from rblspi.estimators import coverage

    visited = _visited(estimator, job) if job.simulated else _seen(job)
    where = "visited by the policy" if job.simulated else "next in the data"
    print(f"coverage, {where}: {coverage(estimator, visited)}")


def _visited(estimator: Any, job: Job) -> Any:
    """States that the policy comes to in the environment."""
    from rblspi.datasets import collect

    start = int(job.environment.action_space.start)  # type: ignore[attr-defined]
    walk = collect(job.environment, _VISITS, lambda seen: int(estimator.act(seen)) + start, seed=0)
    return next(walk).transitions.observations


def _seen(job: Job) -> Any:
    """Next states of the data, the first of them."""
    return next(iter(job.data)).next_observations[:_VISITS]


def _as_agent(estimator: Any, job: Job, basis: Basis, algo: str) -> Agent:
    from rblspi.agents import FittedPolicy

    names = ("discount", "ridge", "prior_precision", "noise_precision", "pessimism")
    settings = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
    return FittedPolicy.from_fit(
        job.environment,
        basis,
        estimator.statistics_,
        estimator.weights_,
        algorithm=algo,
        **settings,
    )
