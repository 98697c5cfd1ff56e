"""``rblspi watch``: a film of a saved agent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rblspi.cli import words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rblspi.agents import Agent


def watch(
    agent: Annotated[Path, typer.Argument(help="agent.npz, or the folder it is in.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help=".gif or .mp4.", show_default="episode.gif"
        ),
    ] = None,
    episodes: Annotated[int, typer.Option(min=1)] = 1,
    steps: Annotated[int, typer.Option(min=1, help="Steps of the whole film at the most.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the environment.")] = 0,
    fps: Annotated[
        int | None, typer.Option(min=1, max=100, show_default="the environment's own")
    ] = None,
    explore: Annotated[
        bool, typer.Option("--explore", help="Act as in training, not by the best estimate.")
    ] = False,
    env: Annotated[
        str | None,
        typer.Option(metavar="ENV_ID", help="Another environment; module:EnvId imports first."),
    ] = None,
    env_set: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An argument of the environment; repeatable."),
    ] = None,
) -> None:
    """Write a GIF or MP4 of what a saved agent does."""
    path = words.agent_file(agent)
    target = out or path.with_name("episode.gif")
    if target.suffix not in (".gif", ".mp4"):
        raise ValueError(f"--out {target} must end in .gif or .mp4")
    loaded = words.load_agent(path, env, words.assignments("--env-set", env_set or []))
    stage = _stage(loaded)
    frames = _film(loaded, stage, episodes, steps, seed, not explore)
    rate = fps or int(stage.metadata.get("render_fps") or 30)
    stage.close()
    target.parent.mkdir(parents=True, exist_ok=True)
    (_write_gif if target.suffix == ".gif" else _write_mp4)(target, frames, rate)
    print(f"{target}: {len(frames)} frames")


def _stage(agent: Agent) -> Any:
    """The agent's environment, made anew so that it draws pictures."""
    import gymnasium as gym

    if agent.env.spec is None:
        raise ValueError("the environment has no id, so it cannot be made for watching: pass --env")
    modes = agent.env.metadata.get("render_modes") or []
    if "rgb_array" not in modes:
        raise ValueError(f"{agent.env.spec.id} cannot draw pictures: it has no mode rgb_array")
    try:
        return gym.make(agent.env.spec, render_mode="rgb_array")
    except gym.error.DependencyNotInstalled as error:
        raise ValueError(f"{agent.env.spec.id} cannot draw pictures: {error}") from error


def _film(
    agent: Agent, stage: Any, episodes: int, steps: int, seed: int, deterministic: bool
) -> list[NDArray[np.uint8]]:
    frames: list[NDArray[np.uint8]] = []
    for episode in range(episodes):
        observation, _ = stage.reset(seed=seed if episode == 0 else None)
        frames.append(stage.render())
        ended = False
        while not ended and len(frames) < steps:
            action, _ = agent.predict(observation, deterministic=deterministic)
            observation, _, terminated, truncated, _ = stage.step(action)
            frames.append(stage.render())
            ended = terminated or truncated
    return frames


def _write_gif(path: Path, frames: list[NDArray[np.uint8]], rate: int) -> None:
    from PIL import Image

    first, *rest = (Image.fromarray(frame).quantize(64) for frame in frames)
    # A GIF counts in hundredths of a second, and viewers do not go below two of them.
    duration = max(round(100 / rate), 2) * 10
    first.save(path, save_all=True, append_images=rest, duration=duration, loop=0)


def _write_mp4(path: Path, frames: list[NDArray[np.uint8]], rate: int) -> None:
    try:
        import imageio.v2 as imageio
        import imageio_ffmpeg  # type: ignore[import-untyped]  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'MP4 needs imageio: pip install "rblspi[render]", or write a .gif'
        ) from error
    height, width = frames[0].shape[:2]
    even = [frame[: height - height % 2, : width - width % 2] for frame in frames]
    film: Any = imageio.get_writer(path, fps=rate, codec="libx264", macro_block_size=2)
    with film:
        for frame in even:
            film.append_data(frame)
