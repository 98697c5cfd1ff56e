"""A trial: a folder of its own, random choices, and real commands in processes of their own."""

import random
import shutil
import time

from tests.support.process import PRIVATE, Running


class Trial:
    """What a trial works with.

    Parameters
    ----------
    name : str
        Decides all random choices.
    prepared : Prepared
        What commands write if nobody disturbs them.
    folder : Path
        Empty at first.
    """

    def __init__(self, name, prepared, folder):
        self.prepared, self.folder = prepared, folder
        self.rng = random.Random(name)
        self._started = []

    def start(self, *arguments, **options):
        """Start a command in the folder of the trial."""
        running = Running(self.folder, *arguments, **options)
        self._started.append(running)
        return running

    def run(self, *arguments, **options):
        """Run a command to its end."""
        return self.start(*arguments, **options).wait()

    def pause(self, longest):
        """Let a random time pass."""
        time.sleep(self.rng.uniform(0.0, longest))

    def copy(self, source, name):
        """Copy something that was prepared into the folder of the trial."""
        target = self.folder / name
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        return target

    def require_tidy(self):
        """Refuse temporary files that a command left."""
        left = [p.name for p in self.folder.rglob(".*") if not p.name.startswith(PRIVATE)]
        assert not left, f"left behind: {', '.join(left)}"

    def end(self):
        """End the commands that are still running."""
        for running in self._started:
            running.end()
