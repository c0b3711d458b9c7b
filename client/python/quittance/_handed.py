"""What `quittance work` hands to the command that it starts for a run."""

from __future__ import annotations

import os
from typing import Any, Dict, Mapping, NamedTuple, Optional


class Handed(NamedTuple):
    """The run that this process was started for. `client.open(handed.run_id, **handed.options)`
    takes the lease that is held for it, and reads the checkpoint.

    run_id        the run
    options       what opens it: agent, worker, lease_seconds, attempt_id
    lease, epoch  the lease itself, for programs that speak to the API themselves; a secret
    checkpoint    the file with the last checkpoint, None where none was saved
    turn          its turn, 0 where none was saved
    """

    run_id: str
    options: Dict[str, Any]
    lease: str
    epoch: int
    checkpoint: Optional[str]
    turn: int


def handed(environment: Optional[Mapping[str, str]] = None) -> Optional[Handed]:
    """Reads from the environment which run this process was started for by `quittance work`.
    None in a process that was started otherwise."""
    env = os.environ if environment is None else environment
    run_id, attempt_id = env.get("QUITTANCE_RUN_ID"), env.get("QUITTANCE_ATTEMPT_ID")
    if not run_id or not attempt_id:
        return None
    options: Dict[str, Any] = {"agent": env.get("QUITTANCE_AGENT", ""), "worker": env.get("QUITTANCE_WORKER") or None, "attempt_id": attempt_id}
    seconds = _number(env, "QUITTANCE_LEASE_SECONDS")
    if seconds:
        options["lease_seconds"] = seconds
    return Handed(run_id, options, env.get("QUITTANCE_LEASE", ""), _number(env, "QUITTANCE_EPOCH"), env.get("QUITTANCE_CHECKPOINT") or None, _number(env, "QUITTANCE_TURN"))


def _number(env: Mapping[str, str], name: str) -> int:
    text = env.get(name, "")
    return int(text) if text.isdigit() else 0
