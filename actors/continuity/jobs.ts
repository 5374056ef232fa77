/** The offloaded jobs on capsules, provenance and histories. */

import { type Job, LARGE_JOB_MS } from '../../src/base/offload.js';
import type { Parsed } from '../../src/core/parsed.js';
import type { PositionVerdict } from '../release/core/position.js';
import { REPLAY_JOB_MS } from '../release/jobs.js';
import type { MigrationReplay } from '../release/stored-replays.js';
import type { OpenedCapsule, OpenTask, SealedCapsule, SealTask } from './core/capsule.js';
import type { StoredChain } from './core/provenance.js';

const SMALL_CAPSULE_BYTES = 256 * 1024;

export const SEAL_CAPSULE: Job<SealTask, Parsed<SealedCapsule>> = {
  name: 'sealCapsule',
  load: async () => (await import('./core/capsule.js')).sealCapsule,
  isSmall: ({ outputs }) =>
    outputs.reduce((sum, { output_size }) => sum + output_size, 0) <= SMALL_CAPSULE_BYTES,
  ms: LARGE_JOB_MS,
};

export const OPEN_CAPSULE: Job<OpenTask, Parsed<OpenedCapsule>> = {
  name: 'openCapsule',
  load: async () => (await import('./sealed-capsules.js')).openCapsule,
  isSmall: ({ sealed }) => sealed.length <= SMALL_CAPSULE_BYTES,
  ms: LARGE_JOB_MS,
};

export const VERIFY_PROVENANCE: Job<StoredChain, string> = {
  name: 'verifyProvenance',
  load: async () => (await import('./core/provenance.js')).verifyChain,
  // About 70 entries of 0.1 ms.
  isSmall: ({ text }) => text.length <= 48 * 1024,
  ms: LARGE_JOB_MS,
};

export const REPLAY_MIGRATION: Job<MigrationReplay, PositionVerdict> = {
  name: 'replayMigration',
  load: async () => (await import('../release/stored-replays.js')).replayMigration,
  isSmall: () => false,
  ms: REPLAY_JOB_MS,
};

export const CONTINUITY_JOBS = [SEAL_CAPSULE, OPEN_CAPSULE, VERIFY_PROVENANCE, REPLAY_MIGRATION];
