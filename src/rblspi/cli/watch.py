"""``rblspi watch``: make a film of a saved agent or policy."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rblspi.cli import options
from rblspi.cli.commands import Command
from rblspi.cli.saved import Selection, wrapped_by
from rblspi.core.files import replacing

if TYPE_CHECKING:
    import gymnasium as gym
    import numpy as np
    from numpy.typing import NDArray

    from rblspi.rollout.steps import Act


def watch(
    saved: Selection,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="A .gif or an .mp4.")
    ] = None,
    episodes: Annotated[int, typer.Option(min=1)] = 1,
    steps: Annotated[
        int, typer.Option(min=1, help="The largest number of frames in the film.")
    ] = 1000,
    seed: options.Seed = 0,
    fps: Annotated[
        int | None, typer.Option(min=1, max=100, show_default="the environment's own")
    ] = None,
    explore: options.Explore = False,
) -> None:
    """Write a GIF or MP4 of a saved agent or policy as it acts."""
    target = out or saved.file.with_name("episode.gif")
    if target.suffix not in (".gif", ".mp4"):
        raise ValueError(f"--out {target} must end in .gif or .mp4")
    from rblspi.rollout.evaluate import act_of

    loaded = saved.load()
    policy = loaded.policy(explore)
    own = loaded.env or getattr(loaded.actor, "env", None) or policy.make_environment()
    with _rendered(own, saved.wrap) as stage:
        frames = _film(stage, act_of(policy, explore), episodes, steps, seed)
        rate = fps or int(stage.metadata.get("render_fps") or 30)
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as temporary:
        (_write_gif if target.suffix == ".gif" else _write_mp4)(temporary, frames, rate)
    print(f"{target}: {len(frames)} frames")


def _rendered(env: gym.Env[Any, Any], wrap: Iterable[str] | None = None) -> Any:
    """The same environment, made so that it draws pictures; closed after use."""
    from contextlib import closing

    import gymnasium as gym

    if env.spec is None:
        raise ValueError("the environment has no id, so it cannot be made for watching: pass --env")
    if "rgb_array" not in (env.metadata.get("render_modes") or []):
        raise ValueError(f"{env.spec.id} cannot draw pictures: it has no mode rgb_array")
    try:
        if not wrap:
            return closing(gym.make(env.spec, render_mode="rgb_array"))
        bare = replace(env.spec, additional_wrappers=())
        return closing(wrapped_by(gym.make(bare, render_mode="rgb_array"), wrap))
    except gym.error.DependencyNotInstalled as error:
        raise ValueError(f"{env.spec.id} cannot draw pictures: {error}") from error


def _film(stage: Any, act: Act, episodes: int, steps: int, seed: int) -> list[NDArray[np.uint8]]:
    """A frame before every episode, and one after every step."""
    from rblspi.rollout.steps import rollout

    frames: list[NDArray[np.uint8]] = []

    def filmed(observation: Any, **masks: Any) -> Any:
        if begins:
            frames.append(stage.render())
        return act(observation, **masks)

    begins = True
    for step in rollout(stage, filmed, seed=seed):
        frames.append(stage.render())
        begins = step.ended
        episodes -= step.ended
        if not episodes or len(frames) >= steps:
            return frames
    raise AssertionError("a rollout has no end")


def _write_gif(path: Path, frames: list[NDArray[np.uint8]], rate: int) -> None:
    from PIL import Image

    first, *rest = (Image.fromarray(frame).quantize(64) for frame in frames)
    # A GIF counts in hundredths of a second, and viewers do not go below two of them.
    duration = max(round(100 / rate), 2) * 10
    settings: dict[str, Any] = {"append_images": rest, "duration": duration, "loop": 0}
    first.save(path, format="GIF", save_all=True, **settings)


def _write_mp4(path: Path, frames: list[NDArray[np.uint8]], rate: int) -> None:
    try:
        from imageio_ffmpeg import get_ffmpeg_exe  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError(
            'MP4 needs imageio-ffmpeg: pip install "rblspi[render]", or write a .gif'
        ) from error
    height, width = (side - side % 2 for side in frames[0].shape[:2])  # for the codec
    settings = f"-f rawvideo -pix_fmt rgb24 -s {width}x{height} -r {rate} -i - -c:v libx264"
    settings += " -pix_fmt yuv420p -f mp4 -loglevel error -y"
    command, pipe = [get_ffmpeg_exe(), *settings.split(), str(path)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        try:
            for frame in frames:
                process.stdin.write(frame[:height, :width].tobytes())
        except BrokenPipeError:
            pass  # ffmpeg has ended with an error message
        except BaseException:
            process.kill()
            raise
        words = process.communicate()[1].decode(errors="replace").strip()
    if process.returncode:
        raise OSError(errno.EIO, words.splitlines()[-1] if words else "ffmpeg failed")


COMMAND = Command(watch, "runs/pole --out pole.gif")
