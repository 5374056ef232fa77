/** Puts provenance entries into the units that they describe. */

import type { ProvenanceEntry } from '../../schema/continuity.js';
import type { ProvenanceKind } from '../../schema/continuity-words.js';
import { isoTime } from '../../src/base/time.js';
import { canonicalSha256 } from '../../src/core/sealing/canonical-json.js';
import type { Turn } from '../runtime/turn.js';
import { nextProvenanceEntry } from './core/provenance.js';
import type { ExecutionService } from './execution-service.js';
import type { ExecutionRow } from './rows.js';
import { PROVENANCE } from './tables.js';

export interface NewEntry {
  readonly kind: ProvenanceKind;
  /** Below 500 characters, without anything of the payload. */
  readonly summary?: string;
  /** Only its hash is stored. */
  readonly evidence: object | { readonly sha256: string };
}

/** The execution after the change that the entry describes. */
type Scope = Pick<ExecutionRow, 'continuity_id' | 'tenant_id' | 'epoch'>;

/** Chains are written in the line of their execution only, so the head is current. */
export async function putNextEntry(
  service: ExecutionService,
  turn: Turn,
  execution: Scope,
  entry: NewEntry,
): Promise<ProvenanceEntry> {
  const head = await service.rows.one('provenanceHead', execution.continuity_id);
  return putEntry(service, turn, execution, entry, head ?? null);
}

/** Puts the first entry of a chain, or one whose predecessor is known. */
export function putEntry(
  service: ExecutionService,
  turn: Turn,
  { continuity_id, tenant_id, epoch }: Scope,
  { kind, summary, evidence }: NewEntry,
  previous: { readonly entry_sha256: string; readonly seq: number } | null,
): ProvenanceEntry {
  const sha256 = (evidence as { sha256?: unknown }).sha256;
  const entry = nextProvenanceEntry(
    previous,
    {
      id: service.newIdLike(continuity_id),
      continuity_id,
      tenant_id,
      epoch,
      kind,
      ...(summary === undefined ? {} : { redacted_summary: summary }),
      payload_sha256: typeof sha256 === 'string' ? sha256 : canonicalSha256(evidence),
      created_at: isoTime(service.now),
    },
    service.keyring?.signing,
  );
  const seq = previous === null ? 0 : previous.seq + 1;
  turn.put(PROVENANCE.insert, `${continuity_id}:${seq}`, { ...entry, seq });
  return entry;
}
