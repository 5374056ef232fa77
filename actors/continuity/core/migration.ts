/**
 * Live migrations: the findings between two versions, the verdict, and the stored and the wire
 * form. The server's payload key, if there is one, seals the data of the instance.
 */

import type {
  MigrationFinding,
  MigrationRecord,
  MigrationVerdict,
} from '../../../schema/continuity.js';
import type { MigrationState } from '../../../schema/continuity-words.js';
import type { Execution } from '../../../schema/execution.js';
import type { CapsuleManifest } from '../../../schema/handoff.js';
import type { SemanticDiff } from '../../../schema/release.js';
import { compareText } from '../../../src/base/bounds.js';
import type { JsonObject, JsonValue } from '../../../src/base/json.js';
import {
  CLEANUP_REMOVED,
  findingsOfDiff,
  migrationFinding,
} from '../../../src/core/migration-findings.js';
import { decodeBase64 } from '../../../src/core/sealing/base64.js';
import { canonicalJson } from '../../../src/core/sealing/canonical-json.js';
import type { PayloadKey } from '../../../src/core/sealing/keys.js';
import { openWith, type SealContext, seal } from '../../../src/core/sealing/sealing.js';
import type { StoredRow } from '../../../src/db/table.js';
import type { MIGRATIONS } from '../tables.js';

const INCOMPATIBLE = 'INCOMPATIBLE:';
const SIDE_EFFECT_RISK = 'SIDE_EFFECT_RISK:';
const OUTPUT_REMOVED = 'CHECKPOINT_OUTPUT_REMOVED:';
export const REPLAY_PASS = 'HISTORICAL_REPLAY_PASS';
export const REPLAY_FAIL = 'HISTORICAL_REPLAY_FAIL';

const PREFIXES: Readonly<Record<SemanticDiff['entries'][number]['severity'], string>> = {
  incompatible: INCOMPATIBLE,
  side_effect_risk: SIDE_EFFECT_RISK,
  behavioral: '',
  informational: '',
};

interface Losses {
  /** Blocks that have an output and are not in the target. */
  readonly outputs: readonly string[];
  /** Pending clean-ups that the target would not run (`owed-clean-ups.ts`). */
  readonly cleanUps: readonly MigrationFinding[];
}

/** Sorted and distinct. */
export function findingCodes(
  { entries }: Pick<SemanticDiff, 'entries'>,
  { outputs: removedOutputs, cleanUps }: Losses,
  hasReplayed: boolean,
): string[] {
  const codes = new Set([...entries.map(codeOf), ...cleanUps.map(({ code }) => code)]);
  for (const block of removedOutputs) codes.add(OUTPUT_REMOVED + block);
  codes.add(hasReplayed ? REPLAY_PASS : REPLAY_FAIL);
  return [...codes].sort(compareText);
}

const codeOf = ({ category, severity }: SemanticDiff['entries'][number]) =>
  PREFIXES[severity] + category.toUpperCase();

/** Findings that prevent an automatic migration. */
export function findingsIn(
  { entries }: Pick<SemanticDiff, 'entries'>,
  { outputs: removedOutputs, cleanUps }: Losses,
  hasTransforms: boolean,
  replayed: readonly MigrationFinding[],
): MigrationFinding[] {
  return [
    ...findingsOfDiff(entries, codeOf),
    ...replayed,
    ...cleanUps,
    ...removedOutputs.map((block_id) => ({
      ...migrationFinding(
        'OUTPUT_REMOVED',
        `block ${block_id} has an output and is not in the target`,
        { block_id },
      ),
      code: OUTPUT_REMOVED + block_id,
    })),
    ...(hasTransforms ? [migrationFinding('TRANSFORMS', 'the data are transformed')] : []),
  ];
}

/**
 * | verdict           | the first condition that holds                                             |
 * |-------------------|----------------------------------------------------------------------------|
 * | incompatible      | a finding is incompatible                                                  |
 * | pin               | the replay failed                                                          |
 * | approval_required | transforms, a risk of side effects, outputs without a block, lost clean-ups |
 * | automatic         | otherwise                                                                  |
 */
export function verdictOn(codes: readonly string[], hasTransforms: boolean): MigrationVerdict {
  const has = (prefix: string) => codes.some((code) => code.startsWith(prefix));
  if (has(INCOMPATIBLE)) return 'incompatible';
  if (!codes.includes(REPLAY_PASS)) return 'pin';
  const isRisky = [SIDE_EFFECT_RISK, OUTPUT_REMOVED, CLEANUP_REMOVED].some(has);
  return hasTransforms || isRisky ? 'approval_required' : 'automatic';
}

/** Pinned and incompatible migrations cannot be approved. */
export function mayApply(verdict: MigrationVerdict, isApproved: boolean): boolean {
  return verdict === 'automatic' || (verdict === 'approval_required' && isApproved);
}

const RETENTION_DEFAULT_S = 86_400;
const RETENTION_MIN_S = 60;
const RETENTION_MAX_S = 2_592_000;

/** Time in which a migration can be rolled back. */
export function retentionSeconds(requested: number | null | undefined): number {
  const seconds = requested ?? RETENTION_DEFAULT_S;
  return Math.min(RETENTION_MAX_S, Math.max(RETENTION_MIN_S, seconds));
}

export interface StoredMigration
  extends Omit<MigrationRecord, 'source_context' | 'source_checkpoint' | 'state'> {
  readonly source_checkpoint: Omit<MigrationRecord['source_checkpoint'], 'checkpoint_data'>;
  readonly manifest: CapsuleManifest | null;
  /** The instance continued in its state; absent: it was paused. */
  readonly goes_on?: true;
}

/** Sealed: the instance when the plan was made. */
export interface MigrationSecrets {
  readonly checkpoint_data: JsonValue;
  readonly source_context: JsonObject;
  readonly execution: Execution;
  readonly next_fire_at: string | null;
  readonly place_sha256: string;
}

type MigrationFacts = Pick<
  StoredRow<typeof MIGRATIONS>,
  'id' | 'tenant_id' | 'state' | 'record' | 'secrets'
>;

/** In base64; plain without keys. */
export type StoredSecrets = { readonly sealed: string } | { readonly plain: MigrationSecrets };

/** @param nonce 12 random bytes that were never used before */
export function sealSecrets(
  { id, tenant_id }: Pick<MigrationFacts, 'id' | 'tenant_id'>,
  secrets: MigrationSecrets,
  key: PayloadKey | undefined,
  nonce: Uint8Array,
): StoredSecrets {
  if (key === undefined) return { plain: secrets };
  const plain = Buffer.from(canonicalJson(secrets));
  return { sealed: seal(plain, key.key, nonce, sealContext(id, tenant_id)).toString('base64') };
}

export function openSecrets(
  { id, tenant_id, secrets }: MigrationFacts,
  keys: readonly PayloadKey[],
): MigrationSecrets | undefined {
  const stored = JSON.parse(secrets) as StoredSecrets;
  if ('plain' in stored) return stored.plain;
  const sealed = decodeBase64(stored.sealed);
  const plain = sealed && openWith(keys, sealed, sealContext(id, tenant_id));
  return plain && (JSON.parse(plain.toString('utf8')) as MigrationSecrets);
}

/** The wire record; undefined when no key opens the secrets. */
export function migrationView(row: MigrationFacts, keys: readonly PayloadKey[]) {
  const secrets = openSecrets(row, keys);
  return secrets && recordOf(storedOf(row), row.state as MigrationState, secrets);
}

export function storedOf({ record }: Pick<MigrationFacts, 'record'>): StoredMigration {
  const stored = JSON.parse(record) as StoredMigration;
  // Plans of earlier versions have no findings.
  return { ...stored, plan: { ...stored.plan, findings: stored.plan.findings ?? [] } };
}

export function recordOf(
  { manifest: _manifest, goes_on: _goesOn, ...stored }: StoredMigration,
  state: MigrationState,
  { checkpoint_data, source_context }: MigrationSecrets,
): MigrationRecord {
  return {
    ...stored,
    state,
    source_checkpoint: { ...stored.source_checkpoint, checkpoint_data },
    source_context,
  };
}

/** Bound to the migration: sealed texts cannot be exchanged between rows. */
function sealContext(id: string, tenant_id: string): SealContext {
  return { tenant_id, continuity_id: id, epoch: 0, allowed_destination_runtime_id: null };
}
