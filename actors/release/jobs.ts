/** Offload jobs that compile definitions, replay histories and run definitions dry. */

import { type Job, LARGE_JOB_MS } from '../../src/base/offload.js';
import type { DefinitionPair } from './core/diff.js';
import type { Verdict } from './core/replay.js';
import type { DryRunEnd, DryRunOrder } from './dry-run.js';
import type { RunReplay } from './stored-replays.js';

/** Timeout of one replay: most take milliseconds, the longest within the turn limit takes seconds. */
export const REPLAY_JOB_MS = 10_000;

export const COMPARE_DEFINITIONS: Job<DefinitionPair, string> = {
  name: 'compareDefinitions',
  load: async () => (await import('./core/diff.js')).compareDefinitions,
  isSmall: ({ baseline, candidate }) => baseline.length + candidate.length <= 128 * 1024,
  ms: LARGE_JOB_MS,
};

export const COMPILE_CANDIDATE: Job<DefinitionPair, string | undefined> = {
  name: 'compileCandidate',
  load: async () => (await import('./stored-replays.js')).compileCandidate,
  isSmall: () => false,
  ms: LARGE_JOB_MS,
};

export const REPLAY_RUN: Job<RunReplay, Verdict> = {
  name: 'replayRun',
  load: async () => (await import('./stored-replays.js')).replayRun,
  isSmall: () => false,
  ms: REPLAY_JOB_MS,
};

export const DRY_RUN: Job<DryRunOrder, DryRunEnd> = {
  name: 'dryRun',
  load: async () => (await import('./dry-run.js')).dryRun,
  isSmall: () => false,
  ms: REPLAY_JOB_MS,
};

export const RELEASE_JOBS = [COMPARE_DEFINITIONS, COMPILE_CANDIDATE, REPLAY_RUN, DRY_RUN];
