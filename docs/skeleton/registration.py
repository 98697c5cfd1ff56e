"""The record by which the command line, experiments, files and figures know the agent."""

from rblspi.registry import Algorithm

ALGORITHM = Algorithm("my-sarsa", "my_package.my_agent:MyAgent", "online", "SARSA")
