/** The findings that keep a migration from being automatic, each with its place and remedy. */

import type { MigrationFinding, MigrationVerdict } from '../../schema/continuity.js';
import type { Entry, Severity } from '../../schema/diff-entry.js';
import { conflict, type EngineError } from '../base/errors.js';

const APPROVE = 'look at it, and migrate with "approved": true';
const STAY =
  'store a further version that goes with the instance, or let it end with the one it has';
const RESOLVE =
  'find out what became of the effect and say so by POST /continuity/effects/{id}/resolve, then ask again';
const AGAIN = 'nothing was changed: ask again in a moment';
/** The prefix of the id of a block whose clean-up would be lost. A person may clean up by hand and approve. */
export const CLEANUP_REMOVED = 'CLEANUP_REMOVED:';

export const REMEDIES = {
  STEP_AT_WORK: AGAIN,
  CHANGED_MEANWHILE: AGAIN,
  REPLAY_DIFFERS: STAY,
  REPLAY_IMPOSSIBLE: STAY,
  REPLAY_TOO_LARGE: STAY,
  OWN_BLOCKS: 'let the instance end with the version that it has: blocks were injected into it',
  EFFECT_IN_DOUBT: RESOLVE,
  WAIT_MOVED:
    'keep the block in the target where it stands in the source, or let it end before the migration',
  CLAIMED_CALL_CHANGED:
    'let the worker complete or fail the task, and ask again; or keep handler and params of the step',
  PARAMS_UNRENDERABLE: 'let the params of the step render with the data of the instance',
  CHILD_CALL_CHANGED:
    'let the child end, and ask again; or keep sequence_name, version and input of the block',
  KIN_STAYS: 'let the child end, or cancel it, and ask again: then its parent goes, without it',
  OWN_BLOCKS_CLASH: 'give the block of the target another id',
  TRANSFORMS: APPROVE,
  OUTPUT_REMOVED: APPROVE,
  CLEANUP_REMOVED:
    'keep these blocks in the target under their ids; or let them run with the version that the instance has ' +
    '(POST /instances/{id}/retry, if it has failed); or do by hand what they do, and migrate by ' +
    'POST /instances/{id}/migrate with "approved": true',
  CLEANUP_MOVED:
    'let it be cleaned up with the version that the instance has, by POST /instances/{id}/retry, or give it up by ' +
    'the signal cancel; or keep the block in the target where it stands in the source',
} as const;
export type FindingCode = keyof typeof REMEDIES;

export function migrationFinding(
  code: FindingCode,
  summary: string,
  { block_id = null, path = block_id }: Partial<Pick<MigrationFinding, 'block_id' | 'path'>> = {},
): MigrationFinding {
  return { code, block_id, path, summary, remedy: REMEDIES[code] };
}

/** The details of the error of a refused migration. */
export interface MigrationRefusal {
  readonly verdict?: MigrationVerdict;
  readonly findings: readonly MigrationFinding[];
}

/** Summaries in one message; the response lists all findings. */
const SUMMARIES_MAX = 3;

/** A 409 with the findings, as `MigrationRefusal` in its details. @param reason the message before their summaries */
export function conflictFor(
  findings: readonly MigrationFinding[],
  { reason, verdict }: { readonly reason?: string; readonly verdict?: MigrationVerdict } = {},
): EngineError {
  const summaries = findings.map(({ summary }) => summary).slice(0, SUMMARIES_MAX);
  const message = [...(reason === undefined ? [] : [reason]), ...summaries].join('; ');
  const refusal: MigrationRefusal = { ...(verdict && { verdict }), findings };
  return conflict(message, { ...refusal });
}

/** Undefined: does not stop an automatic migration. */
const SEVERITY_REMEDIES: Readonly<Record<Severity, string | undefined>> = {
  incompatible: STAY,
  side_effect_risk: APPROVE,
  behavioral: undefined,
  informational: undefined,
};

/** The differences between two versions that stop an automatic migration, with the codes of `finding_codes`. */
export function findingsOfDiff(entries: readonly Entry[], codeOf: (entry: Entry) => string) {
  return entries.flatMap((entry) => {
    const remedy = SEVERITY_REMEDIES[entry.severity];
    if (remedy === undefined) return [];
    const { block_id = null, summary } = entry;
    return [{ code: codeOf(entry), block_id, path: block_id, summary, remedy }];
  });
}
