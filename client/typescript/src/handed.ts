import type { RunOptions } from "./run.js";

/** What `quittance work` hands to the command that it starts for a run. */
export interface Handed {
  runId: string;
  /** `client.open(handed.runId, handed.options)` takes the lease that is held for this process, and reads the checkpoint. */
  options: RunOptions;
  /** The lease itself, for programs that speak to the API themselves; a secret. */
  lease: string;
  epoch: number;
  /** The file with the last checkpoint; undefined where none was saved. */
  checkpoint: string | undefined;
  /** Its turn; 0 where none was saved. */
  turn: number;
}

/**
 * Reads from the environment which run this process was started for by `quittance work`;
 * undefined in a process that was started otherwise.
 */
export function handed(env: Record<string, string | undefined> = process.env): Handed | undefined {
  const runId = env.QUITTANCE_RUN_ID;
  const attemptId = env.QUITTANCE_ATTEMPT_ID;
  if (!runId || !attemptId) return undefined;
  const seconds = Number(env.QUITTANCE_LEASE_SECONDS) || 0;
  return {
    runId,
    options: {
      agent: env.QUITTANCE_AGENT ?? "",
      attemptId,
      ...(env.QUITTANCE_WORKER && { worker: env.QUITTANCE_WORKER }),
      ...(seconds > 0 && { leaseSeconds: seconds }),
    },
    lease: env.QUITTANCE_LEASE ?? "",
    epoch: Number(env.QUITTANCE_EPOCH) || 0,
    checkpoint: env.QUITTANCE_CHECKPOINT || undefined,
    turn: Number(env.QUITTANCE_TURN) || 0,
  };
}
