/**
 * What must hold of limits, of creations that were skipped or collected, of answers that waited, of what came from
 * outside, and of what workers and endpoints gave. Pure; see `invariants.ts`.
 */

import { isDeepStrictEqual } from 'node:util';
import { isTerminal } from '../../schema/states.js';
import type { Index } from './invariants.js';
import {
  type InstanceRecord,
  isAcknowledged,
  isPossible,
  orderOf,
  type Signal,
  type TaskRecord,
} from './ledger.js';
import { eventOf } from './outside.js';
import { type EventRow, groupBy, markOf, type OutputRow, type SignalRow } from './rows.js';
import { ASKING, PAID_BLOCKS } from './shapes.js';

export const checkFlow = (index: Index): string[] => [
  ...checkSkipped(index),
  ...checkCollected(index),
  ...checkResults(index),
  ...checkReplies(index),
  ...checkDeliveries(index),
  ...checkMarks(index),
  ...checkSlotsSeen(index),
];

/** A creation that was skipped made nothing, and its answer named another one of its sequence. */
function checkSkipped({ ledger, instances, tokens }: Index): string[] {
  const found: string[] = [];
  for (const { token, shape, skippedFor } of ledger.creations.values()) {
    if (skippedFor === undefined) continue;
    if (tokens.has(token)) found.push(`creation ${token} was skipped, and made an instance`);
    const holder = instances.get(skippedFor);
    if (holder === undefined) {
      found.push(`creation ${token} was skipped for ${skippedFor}, which does not exist`);
    } else if (ledger.creations.get(holder.token ?? '')?.shape !== shape) {
      found.push(`creation ${token} was skipped for ${skippedFor}, of another sequence`);
    }
  }
  return found;
}

/** An acknowledged creation of a batch is in the instance that the answer named, and in no other one. */
function checkCollected({ ledger, rows, instances }: Index): string[] {
  const found: string[] = [];
  const starts = groupBy(rows.collected, ({ token }) => token);
  for (const { token, shape, collectedIn, certainty } of ledger.creations.values()) {
    const own = starts.get(token) ?? [];
    if (own.length > 1) found.push(`creation ${token} was collected ${own.length} times`);
    if (own.length > 0 && certainty === 'refused') found.push(`refused ${token} was collected`);
    if (collectedIn === undefined) continue;
    if (!instances.has(collectedIn)) {
      found.push(`creation ${token} was collected for ${collectedIn}, which has not started`);
    }
    if (shape === 'batched' && own[0]?.start !== collectedIn) {
      found.push(`creation ${token} was collected for ${collectedIn}, is in ${own[0]?.start}`);
    }
  }
  for (const token of starts.keys()) {
    if (!ledger.creations.has(token)) found.push(`nobody asked for the collected ${token}`);
  }
  return found;
}

/** What a creation that waited was answered is how its instance has ended. A failed one may have been retried. */
function checkResults({ ledger, instances, outputs }: Index): string[] {
  const found: string[] = [];
  for (const { id, results } of ledger.instances.values()) {
    for (const { state, outputs: shown } of results) {
      if (state === undefined || !isTerminal(state)) continue;
      const stored = lastOutputs(outputs.get(id) ?? []);
      const isSame = instances.get(id)?.state === state && isDeepStrictEqual(shown, stored);
      if (isSame) continue;
      const answer = JSON.stringify(shown);
      found.push(`instance ${id} was answered ${state} with ${answer}: ${JSON.stringify(stored)}`);
    }
  }
  return found;
}

/** Of each block, also of one whose last attempt has failed. */
function lastOutputs(rows: readonly OutputRow[]): Record<string, unknown> {
  const shown = rows.filter(({ output_ref }) => output_ref === null || output_ref === '__error__');
  const sorted = shown.sort((a, b) => a.attempt - b.attempt);
  return Object.fromEntries(sorted.map(({ block_id, output }) => [block_id, output]));
}

/** A signal that a step took, by its answer, is the one that the step has as its output, and was replied to. */
function checkReplies({ ledger, rows, outputs }: Index): string[] {
  const stored = new Map(rows.signals.map((row) => [row.id, row]));
  return [...ledger.instances.values()].flatMap((record) =>
    record.signals.flatMap((signal) =>
      signal.answer === undefined
        ? []
        : replyViolations(record, signal, stored.get(signal.id!), outputs.get(record.id) ?? []),
    ),
  );
}

function replyViolations(
  { id }: InstanceRecord,
  { id: signal, number, answer }: Signal,
  row: SignalRow | undefined,
  outputs: readonly OutputRow[],
): string[] {
  const { taken, block_id, reply } = answer!;
  const what = `signal ${signal} of instance ${id}, answered ${JSON.stringify(answer)},`;
  const found: string[] = [];
  if (!taken || block_id !== ASKING) return [`${what} waited for ${ASKING}`];
  if (row?.status !== 'taken' || row.taken_by !== block_id) {
    found.push(`${what} is ${row?.status} by ${row?.taken_by}`);
  }
  const { output } = outputs.find((one) => one.block_id === block_id) ?? {};
  const heard = (output as { readonly number?: unknown } | undefined)?.number;
  if (heard !== number) found.push(`${what} had ${number}, the step took ${heard}`);
  if ((reply as { readonly heard?: unknown } | null)?.heard !== number) {
    found.push(`${what} had ${number}`);
  }
  return found;
}

/** A delivery is one event however often it was sent, and each event is the output of one step. */
function checkDeliveries({ tenant, ledger, rows, outputs, instances }: Index): string[] {
  const found: string[] = [];
  const byProducer = groupBy(rows.events, ({ producer_event_id }) => producer_event_id);
  const byOrder = groupBy(rows.events, ({ correlation_key }) => correlation_key);
  for (const record of ledger.instances.values()) {
    for (const { id, attempts, eventId } of record.deliveries) {
      const stored = byProducer.get(eventOf(tenant, id)) ?? [];
      if (stored.length > 1) found.push(`delivery ${id} is ${stored.length} events`);
      if (eventId !== undefined && stored[0]?.id !== eventId) {
        found.push(`delivery ${id} was answered with event ${eventId}, is ${stored[0]?.id}`);
      }
      if (stored.length > 0 && !attempts.some(isPossible)) {
        found.push(`delivery ${id} was refused, and is an event`);
      }
    }
    if (record.shape !== 'paid') continue;
    const taken = (outputs.get(record.id) ?? []).filter(isPaid).map(markOf);
    const { state } = instances.get(record.id) ?? {};
    const paid = byOrder.get(orderOf(record)) ?? [];
    found.push(...takeViolations(record, state, paid, taken, tenant));
  }
  return found;
}

const isPaid = ({ block_id, output_ref }: OutputRow) =>
  output_ref === null && (PAID_BLOCKS as readonly string[]).includes(block_id);

/** @param taken marks of the outputs of the steps that wait */
function takeViolations(
  { id }: InstanceRecord,
  state: string | undefined,
  events: readonly EventRow[],
  taken: readonly unknown[],
  tenant: string,
): string[] {
  const found: string[] = [];
  const wanted = Math.min(events.length, PAID_BLOCKS.length);
  if (taken.length !== wanted) {
    found.push(`${state} instance ${id} took ${taken.length} of ${events.length} events`);
  }
  for (const { id: event, producer_event_id, takes } of events) {
    const times = taken.filter((mark) => eventOf(tenant, String(mark)) === producer_event_id);
    if (times.length > 1) found.push(`instance ${id} took the event ${event} twice`);
    if (times.length !== takes) {
      found.push(`event ${event} was taken ${takes} times, is ${times.length} outputs of ${id}`);
    }
  }
  return found;
}

/** The output of a task is what somebody gave who had it. */
function checkMarks({ ledger, rows }: Index): string[] {
  const given = new Map<string, Set<unknown>>();
  const blocks = new Set<string>();
  for (const { instanceId, blockId, attempt, ends } of ledger.tasks.values()) {
    blocks.add(blockId);
    const marks = ends.filter(isPossible).map(({ mark }) => mark);
    given.set(`${instanceId} ${blockId} ${attempt}`, new Set(marks));
  }
  return rows.outputs.flatMap((row) => {
    const { instance_id, block_id, attempt, output_ref } = row;
    if (output_ref !== null || !blocks.has(block_id)) return [];
    if (given.get(`${instance_id} ${block_id} ${attempt}`)?.has(markOf(row)) === true) return [];
    return [`block ${block_id} of instance ${instance_id} has an output that nobody gave`];
  });
}

interface Held {
  readonly instance: string;
  readonly from: number;
  readonly until: number;
}

/** No more instances of a key than may were with workers at once, who had them from the claim to the accepted end. */
function checkSlotsSeen({ ledger, instances }: Index): string[] {
  const byKey = groupBy(
    [...ledger.tasks.values()].flatMap((task) => {
      const { limit_key, limit } = instances.get(task.instanceId) ?? {};
      // One that was paused or cancelled meanwhile gave up its slot.
      const isSteered = ledger.instances.get(task.instanceId)?.controls.some(isPossible) === true;
      const held = limit_key == null || isSteered ? undefined : heldBy(task);
      return held === undefined ? [] : [{ ...held, key: limit_key, limit: limit as number }];
    }),
    ({ key }) => key,
  );
  return [...byKey].flatMap(([key, all]) =>
    all.flatMap(({ instance, from, limit }) => {
      const others = all.filter((one) => one.from <= from && from < one.until);
      const count = new Set(others.map((one) => one.instance)).size;
      if (count <= limit) return [];
      return [`${count} of ${limit} instances of key ${key} were at work as ${instance} began`];
    }),
  );
}

function heldBy({ instanceId, epochs, ends }: TaskRecord): Held | undefined {
  const end = ends.find(isAcknowledged);
  const from = end && epochs.get(end.epoch);
  return from === undefined ? undefined : { instance: instanceId, from, until: end!.at };
}
