/**
 * The unit of a change: the execution, and what belongs to it, such as its location, the state of a
 * handoff, and a provenance entry that describes the change.
 */

import type { Execution, ProvenanceEntry } from '../../schema/continuity.js';
import {
  type HandoffState,
  mayMoveHandoff,
  type ProvenanceKind,
} from '../../schema/continuity-words.js';
import { conflict } from '../../src/base/errors.js';
import { isoTime } from '../../src/base/time.js';
import { canonicalSha256 } from '../../src/core/sealing/canonical-json.js';
import type { Order } from '../instance/orders.js';
import { Turn } from '../runtime/turn.js';
import { handoffTerms } from './core/handoff.js';
import { nextProvenanceEntry } from './core/provenance.js';
import type { ExecutionService } from './execution-service.js';
import type { ExecutionRow, HandoffRow } from './rows.js';
import { EXECUTION, HANDOFF, LOCATION, PROVENANCE } from './tables.js';

export interface NewEntry {
  readonly kind: ProvenanceKind;
  /** Below 500 characters, without anything of the payload. */
  readonly summary?: string;
  /** Only its hash is stored. */
  readonly evidence: object | { readonly sha256: string };
}

/** Without a version: it has no row yet. */
export type ExecutionBefore = Execution & Partial<Pick<ExecutionRow, 'version'>>;

type Changes = Partial<
  Pick<Execution, 'current_instance_id' | 'owner_runtime_id' | 'epoch' | 'state'>
>;

export function shownExecution({ version: _, ...execution }: ExecutionBefore): Execution {
  return execution;
}

/** Commits nothing if the execution has changed since it was read. */
export class ExecutionUnit extends Turn {
  /** After the unit. */
  readonly execution: Execution;
  readonly #service: ExecutionService;
  readonly #before: ExecutionBefore;
  /** The last entry of the chain, if this unit has made it. */
  #head: { readonly entry_sha256: string; readonly seq: number } | undefined;

  /** @param changes absent: only dependent rows are changed */
  constructor(service: ExecutionService, before: ExecutionBefore, changes?: Changes) {
    super();
    const updated_at = changes === undefined ? before.updated_at : isoTime(service.now);
    const row = { ...before, ...changes, updated_at };
    const { continuity_id, version } = row;
    if (version === undefined) this.put(EXECUTION.insert, continuity_id, row);
    else this.put(EXECUTION.update, continuity_id, { ...row, version });
    this.#service = service;
    this.#before = before;
    this.execution = shownExecution(row);
  }

  /** Creates an execution, with its first location and entry. */
  static begin(service: ExecutionService, before: Execution, changes?: Changes): ExecutionUnit {
    const unit = new ExecutionUnit(service, before, changes);
    unit.#locate(before, null);
    unit.#enter(before, {
      kind: 'execution_created',
      summary: 'execution created',
      evidence: before,
    });
    return unit;
  }

  /** The row after the commit. */
  get row(): ExecutionRow {
    return { ...this.execution, version: (this.#before.version ?? -1) + 1 };
  }

  locate(handoffId: string | null): void {
    this.#locate(this.execution, handoffId);
  }

  #locate(execution: Execution, handoff_id: string | null): void {
    const { continuity_id, tenant_id, epoch, owner_runtime_id, current_instance_id } = execution;
    this.put(LOCATION.insert, `${continuity_id}:${epoch}`, {
      continuity_id,
      tenant_id,
      epoch,
      runtime_id: owner_runtime_id,
      instance_id: current_instance_id,
      handoff_id,
      entered_at: execution.updated_at,
    });
  }

  /** Chains are written in the line of their execution only, so the head is current. */
  async enter(entry: NewEntry): Promise<ProvenanceEntry> {
    const { continuity_id } = this.execution;
    this.#head ??= await this.#service.rows.one('provenanceHead', continuity_id);
    return this.#enter(this.execution, entry);
  }

  #enter(
    { continuity_id, tenant_id, epoch }: Execution,
    { kind, summary, evidence }: NewEntry,
  ): ProvenanceEntry {
    const { newIdLike, now, keyring } = this.#service;
    const previous = this.#head ?? null;
    const sha256 = (evidence as { sha256?: unknown }).sha256;
    const facts = {
      id: newIdLike(continuity_id),
      continuity_id,
      tenant_id,
      epoch,
      kind,
      ...(summary === undefined ? {} : { redacted_summary: summary }),
      payload_sha256: typeof sha256 === 'string' ? sha256 : canonicalSha256(evidence),
      created_at: isoTime(now),
    };
    const entry = nextProvenanceEntry(previous, facts, keyring?.signing);
    const seq = previous === null ? 0 : previous.seq + 1;
    this.put(PROVENANCE.insert, `${continuity_id}:${seq}`, { ...entry, seq });
    this.#head = { entry_sha256: entry.entry_sha256, seq };
    return entry;
  }

  putHandoff(row: HandoffRow): void {
    this.put(HANDOFF.set, row.id, { ...row, terms: handoffTerms(row) });
  }

  /** @returns the row after that */
  moveHandoff(
    before: HandoffRow,
    state: HandoffState,
    changes: Partial<Pick<HandoffRow, 'capsule_id' | 'capsule_expires_at' | 'failure_code'>> = {},
  ): HandoffRow {
    if (!mayMoveHandoff(before.state, state)) {
      throw conflict(`handoff ${before.id} is ${before.state} and cannot become ${state}`);
    }
    const version = before.version + 1;
    const updated_at = isoTime(this.#service.now);
    const after = { ...before, ...changes, state, version, updated_at };
    this.putHandoff(after);
    return after;
  }

  /** @param order for the instance before the unit, sent if that is in this database */
  async commit(order?: Pick<Order, 'expect' | 'changes'>): Promise<void> {
    const service = this.#service;
    const { current_instance_id } = this.#before;
    if (order !== undefined && (await service.rows.isHere(current_instance_id))) {
      await service.order(this.#before, order, this);
    } else await service.commit(this);
  }

  /** Commits and lifts the fence of the imported instance. */
  async commitImported(): Promise<void> {
    const expect = { states: ['paused'], fence: 'imported' } as const;
    const own = { kind: 'own', epoch: this.execution.epoch } as const;
    await this.#service.order(this.execution, { expect, changes: [own] }, this);
  }
}
