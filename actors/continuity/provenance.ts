/** Entries of provenance, as parts of the units that they tell of (05 §15). */

import { canonicalSha256 } from '../../src/core/continuity/canonical-json.js';
import type { Keyring } from '../../src/core/continuity/keys.js';
import {
  nextProvenanceEntry,
  type ProvenanceEntry,
  type ProvenanceKind,
} from '../../src/core/continuity/provenance.js';
import { isoTime } from '../../src/core/time.js';
import type { Turn } from '../turn.js';
import type { Desk } from './desk.js';
import type { ExecutionRow } from './rows.js';

export interface Told {
  readonly kind: ProvenanceKind;
  /** The epoch that the entry is about. */
  readonly epoch: number;
  /** For people, below 500 characters, without anything of the payload. */
  readonly summary?: string;
  /** What is put down by its hash only. */
  readonly evidence: object | { readonly sha256: string };
}

type Scope = Pick<ExecutionRow, 'continuity_id' | 'tenant_id'>;

/** Puts the next entry of the chain into the unit. Chains are written in their execution's line only. */
export async function tell(
  desk: Desk,
  keyring: Keyring | undefined,
  turn: Turn,
  execution: Scope,
  told: Told,
): Promise<ProvenanceEntry> {
  const head = await desk.deps.rows.provenanceHead(execution.continuity_id);
  return putEntry(desk, keyring, turn, execution, told, head ?? null);
}

/** The first entry of a chain, or one whose predecessor is at hand. */
export function putEntry(
  desk: Desk,
  keyring: Keyring | undefined,
  turn: Turn,
  { continuity_id, tenant_id }: Scope,
  { kind, epoch, summary, evidence }: Told,
  previous: { readonly entry_sha256: string; readonly seq: number } | null,
): ProvenanceEntry {
  const sha256 = (evidence as { sha256?: unknown }).sha256;
  const entry = nextProvenanceEntry(
    previous,
    {
      id: desk.deps.newIdLike(continuity_id),
      continuity_id,
      tenant_id,
      epoch,
      kind,
      ...(summary === undefined ? {} : { redacted_summary: summary }),
      payload_sha256: typeof sha256 === 'string' ? sha256 : canonicalSha256(evidence),
      created_at: isoTime(desk.now),
    },
    keyring?.signing,
  );
  const seq = previous === null ? 0 : previous.seq + 1;
  turn.put('provenance.insert', `${continuity_id}:${seq}`, { ...entry, seq });
  return entry;
}
