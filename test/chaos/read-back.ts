/**
 * What the server says after a chaos run, over HTTP: instances that had ended read as they did when
 * they were first seen, claim histories only move forward, and audits are chains of states.
 */

import type { AuditEntry, TaskInstance } from '../../schema/instance.js';
import type { WorkerAttempt } from '../../schema/worker.js';
import { LIMITS } from '../../src/base/limits.js';
import { type Client, expectStatus, UnexpectedStatusError } from '../helpers/client.js';
import type { InstanceRecord, Ledger, TaskRecord } from './ledger.js';
import { isAcknowledged, terminalChange } from './ledger.js';

/** Enough to meet every kind of instance many times, and few enough to read in seconds. */
const INSTANCES_READ_MAX = 3_000;
const TASKS_READ_MAX = 1_500;
const AUDITS_READ_MAX = 500;
const READS_AT_ONCE = 8;
/** The audit route shows no more; longer chains lack their start. */
const AUDIT_ENTRIES_SHOWN = 200;

/** Sentences about what is wrong; see `invariants.ts`. */
export async function readBack(client: Client, ledger: Ledger): Promise<readonly string[]> {
  const instances = [...ledger.instances.values()];
  const terminal = instances.filter((record) => record.terminal !== undefined);
  // Tasks that changed hands, and instances that were steered, say most.
  const tasks = [...ledger.tasks.values()].sort((a, b) => b.epochs.size - a.epochs.size);
  const busiest = [...instances].sort((a, b) => b.controls.length - a.controls.length);
  return [
    ...(await each(terminal.slice(0, INSTANCES_READ_MAX), (one) => checkTerminal(client, one))),
    ...(await each(tasks.slice(0, TASKS_READ_MAX), (one) => checkAttempts(client, one))),
    ...(await each(busiest.slice(0, AUDITS_READ_MAX), (one) => checkAuditChain(client, one))),
  ];
}

async function checkTerminal(client: Client, record: InstanceRecord): Promise<string[]> {
  const body = expectStatus(await client.get<TaskInstance>(`/instances/${record.id}`), 200);
  const change = terminalChange(record, body.state, { ...body });
  return change === undefined ? [] : [change];
}

async function checkAttempts(client: Client, task: TaskRecord): Promise<string[]> {
  const reply = await client.get<WorkerAttempt[]>(`/workers/tasks/${task.id}/attempts?limit=1000`);
  return attemptViolations(task, expectStatus(reply, 200));
}

/** Exported for its own test. @param attempts oldest first */
export function attemptViolations(task: TaskRecord, attempts: readonly WorkerAttempt[]): string[] {
  const found: string[] = [];
  const claims = attempts.filter(({ event }) => event === 'claimed');
  const isGrowing = claims.every(
    ({ claim_epoch }, i) => i === 0 || claim_epoch > claims[i - 1]!.claim_epoch,
  );
  if (!isGrowing) found.push(`the claims of task ${task.id} do not grow`);
  // A full history has lost its oldest entries, and keeps all that came after the first it shows.
  const isFull = attempts.length >= LIMITS.taskHistoryMax;
  const shownFrom = isFull ? (claims[0]?.claim_epoch ?? Number.POSITIVE_INFINITY) : 0;
  for (const epoch of task.epochs.keys()) {
    if (epoch < shownFrom) continue;
    if (!claims.some(({ claim_epoch }) => claim_epoch === epoch)) {
      found.push(`the claim of task ${task.id} at epoch ${epoch} is not in its history`);
    }
  }
  const ends = attempts.filter(({ event }) => event === 'completed' || event === 'failed');
  if (ends.length > 1) found.push(`task ${task.id} ended ${ends.length} times in its history`);
  const promised = task.ends.find(isAcknowledged);
  if (promised === undefined) return found;
  const event = promised.kind === 'complete' ? 'completed' : 'failed';
  if (ends[0]?.event !== event || ends[0].claim_epoch !== promised.epoch) {
    const shown = attempts.map((one) => `${one.event}@${one.claim_epoch}`).join(' ');
    found.push(
      `the history of task ${task.id} lacks its ${promised.kind} at ${promised.epoch}: ${shown}`,
    );
  }
  return found;
}

async function checkAuditChain(client: Client, record: InstanceRecord): Promise<string[]> {
  const instance = expectStatus(await client.get<TaskInstance>(`/instances/${record.id}`), 200);
  const audit = expectStatus(await client.get<AuditEntry[]>(`/instances/${record.id}/audit`), 200);
  return auditViolations(instance, audit);
}

/** Exported for its own test. @param newestFirst as the audit route lists it */
export function auditViolations(
  instance: Pick<TaskInstance, 'id' | 'state'>,
  newestFirst: readonly AuditEntry[],
): string[] {
  const found: string[] = [];
  const moves = newestFirst.filter(({ event_type }) => event_type === 'state_transition').reverse();
  for (const [i, { from_state }] of moves.entries()) {
    const before = moves[i - 1]?.to_state;
    if (before !== undefined && from_state !== before) {
      found.push(`audit of instance ${instance.id}: left ${from_state} while ${before}`);
    }
  }
  const last = moves.at(-1)?.to_state;
  if (last !== undefined && last !== instance.state) {
    found.push(`audit of instance ${instance.id} ends in ${last}, it is ${instance.state}`);
  }
  if (newestFirst.length > AUDIT_ENTRIES_SHOWN) {
    found.push(`audit of instance ${instance.id} shows ${newestFirst.length} entries`);
  }
  return found;
}

/** What the checks of all items found; an item that cannot be read is a finding too. */
async function each<T extends { readonly id: string }>(
  items: readonly T[],
  check: (item: T) => Promise<string[]>,
): Promise<string[]> {
  const found: string[] = [];
  const queue = items.values();
  const reader = async () => {
    for (const item of queue) {
      try {
        found.push(...(await check(item)));
      } catch (error) {
        if (!(error instanceof UnexpectedStatusError)) throw error;
        found.push(`${item.id} cannot be read: ${error.message}`);
      }
    }
  };
  await Promise.all(Array.from({ length: READS_AT_ONCE }, reader));
  return found;
}
