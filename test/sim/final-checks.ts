/** What must hold of the rows when everything has come to rest. */

import type { Hooks } from '../../schema/blocks.js';
import type { Execution } from '../../schema/execution.js';
import type { Failure } from '../../schema/failure.js';
import { type InstanceState, isEnded } from '../../schema/states.js';
import { contextData, type MemoryTables, type Row } from './memory-tables.js';
import type { Observer } from './observer.js';
import type { Promises } from './promises.js';
import { Violation } from './violation.js';

/** @throws Violation */
export function checkEnd(tables: MemoryTables, observer: Observer, promises: Promises): void {
  checkNumbers(tables, 'signals', 'signal_count');
  checkNumbers(tables, 'audit_log', 'audit_count');
  checkTasks(tables);
  checkDeadLetters(tables);
  checkFailures(tables);
  checkHooks(tables, observer);
  checkCancels(tables);
  observer.collecting.checkEnd();
  observer.receipts.checkEnd();
  observer.sagas.checkEnd();
  for (const { instance, birth, key } of promises.noted) {
    const row = tables.row('instances', instance);
    const isSame = birth === observer.birthsOf(instance);
    if (isSame && row !== undefined && contextData(row)[key] === undefined) {
      throw new Violation(`the context lost ${key}, whose signal was acknowledged`, instance);
    }
  }
}

/** Rows are numbered from 1 without gaps, and the instance knows how many there are. */
function checkNumbers(tables: MemoryTables, name: string, column: string): void {
  const numbers = new Map<string, number[]>();
  for (const row of tables.rows(name).values()) {
    const id = String(row.instance_id);
    const list = numbers.get(id) ?? [];
    if (list.length === 0) numbers.set(id, list);
    list.push(Number(row.seq));
  }
  for (const [id, row] of tables.rows('instances')) {
    const list = (numbers.get(id) ?? []).sort((a, b) => a - b);
    const isGapless = list.every((number, i) => number === i + 1);
    if (!isGapless || list.length !== row[column]) {
      throw new Violation(`${name} are numbered ${list}, counted ${row[column]}`, id);
    }
  }
}

function checkTasks(tables: MemoryTables): void {
  for (const [id, task] of tables.rows('worker_tasks')) {
    const isOpen = task.state === 'pending' || task.state === 'claimed';
    const isQueued = task.rank !== null;
    if (isOpen !== isQueued) {
      throw new Violation(`task ${id} is ${task.state}, queued: ${isQueued}`, owner(task));
    }
    if (task.state === 'claimed' && (task.worker_id === null || task.heartbeat_at === null)) {
      throw new Violation(`task ${id} is claimed by nobody`, owner(task));
    }
  }
}

function checkDeadLetters(tables: MemoryTables): void {
  for (const [id, { state, sequence_id, failure }] of tables.rows('instances')) {
    const letter = tables.row('dead_letters', id);
    const isDead = letter !== undefined;
    if (isDead !== (state === 'failed')) {
      throw new Violation(`a ${state} instance, dead letter: ${isDead}`, id);
    }
    const { code } = (failure ?? {}) as Partial<Failure>;
    if (isDead && (letter.sequence_id !== sequence_id || letter.failure_code !== code)) {
      throw new Violation(
        `its dead letter is of ${letter.sequence_id}: ${letter.failure_code}`,
        id,
      );
    }
  }
}

/** The column says why exactly while the instance is failed, as its execution has it. */
function checkFailures(tables: MemoryTables): void {
  for (const [id, { state, execution, failure }] of tables.rows('instances')) {
    const { f, y = null } = execution as unknown as Execution;
    const isFailed = state === 'failed' || (state === 'paused' && f === 1);
    const expected = JSON.stringify(isFailed ? y : null);
    if (JSON.stringify(failure ?? null) !== expected || (isFailed && y === null)) {
      const text = JSON.stringify(failure);
      throw new Violation(`a ${state} instance with the failure ${text}, not ${expected}`, id);
    }
  }
}

/** A hook of a cancel or a time-out that fails is told, whatever becomes of it then. */
function checkHooks(tables: MemoryTables, { unclean }: Observer): void {
  for (const [id, { state, sequence_id, failure }] of tables.rows('instances')) {
    const isLate = (failure as Failure | null)?.code === 'instance_timeout';
    if ((state !== 'cancelled' && !isLate) || unclean.has(id)) continue;
    const { definition } = tables.row('sequences', String(sequence_id)) ?? {};
    const { on_cancel, on_failure } = (definition ?? {}) as Hooks;
    const hooks = isLate ? on_failure : on_cancel;
    if (hooks?.some(({ handler }) => handler === 'fail') !== true) continue;
    throw new Violation(`it is ${state}, and a hook of that has failed`, id);
  }
}

/**
 * Every order of an event to cancel was carried out, and only live instances await one. A retry continues the flow of
 * an instance that has failed meanwhile for another reason, which its failure tells.
 */
function checkCancels(tables: MemoryTables): void {
  const continued = new Set(
    [...tables.rows('audit_log').values()]
      .filter((row) => JSON.stringify(row).includes('its cancellation had not finished'))
      .map(owner),
  );
  for (const row of tables.rows('event_cancels').values()) {
    const instance = tables.row('instances', owner(row));
    if (instance === undefined) continue;
    if (row.outcome === null)
      throw new Violation(`${row.event_id} has not cancelled it`, owner(row));
    const isCompleted = instance.state === 'completed' && !continued.has(owner(row));
    if (row.outcome === 'cancelled' && isCompleted) {
      throw new Violation(`${row.event_id} has cancelled it, and it is completed`, owner(row));
    }
  }
  const awaiting = new Set([...tables.rows('cancel_waits').values()].map(owner));
  for (const [id, { state, execution }] of tables.rows('instances')) {
    const { E: cancelOn } = execution as unknown as Execution;
    const isAwaited = cancelOn !== undefined && !isEnded(state as InstanceState);
    if (awaiting.has(id) !== isAwaited) {
      throw new Violation(`a ${state} instance, awaits to be cancelled: ${awaiting.has(id)}`, id);
    }
  }
}

const owner = (row: Row) => String(row.instance_id);
