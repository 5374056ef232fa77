/**
 * Turns the result or error of a handler into an outcome that can be stored. Handlers are not trusted: results may be
 * cyclic, unbounded, proxies, or have getters that throw. A result is copied within bounds; anything but plain JSON
 * fails the step permanently. Pure; never throws.
 */

import { isFailureCode } from '../../schema/failure.js';
import { clip } from '../base/bounds.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json.js';
import { permanentFailure, type StepOutcome } from '../core/builtin.js';
import { RETRY_AFTER_MS_MAX } from './http-request.js';

/** In characters of JSON, approximately: an http_request response of 10 MiB with its headers. */
const OUTPUT_CHARACTERS_MAX = 10 * 1024 * 1024 + 64 * 1024;
/** The limit for request bodies, too: deeper values cannot be stored. Also detects cycles. */
const OUTPUT_DEPTH_MAX = 256;
const MESSAGE_LENGTH_MAX = 1_000;
const STACK_LENGTH_MAX = 10_000;

class Fault extends Error {}

export function readOutcome(handler: string, given: unknown): StepOutcome {
  try {
    return outcomeOf(given);
  } catch (thrown) {
    const fault = thrown instanceof Fault ? thrown.message : `reading it threw ${nameOf(thrown)}`;
    return crashed(`${handler} gave no usable outcome: ${fault}`);
  }
}

/** The message of the error stays in the log: it may contain what the author of the workflow must not see. */
export function thrownOutcome(handler: string, thrown: unknown): StepOutcome {
  return crashed(`${handler} threw ${nameOf(thrown)}; see the log`);
}

function crashed(message: string): StepOutcome {
  return permanentFailure(message, undefined, 'handler_crashed');
}

/** For the log: the stack of an error, or the type of any other value. */
export function describeThrown(thrown: unknown): string {
  try {
    if (thrown instanceof Error) return clip(String(thrown.stack), STACK_LENGTH_MAX);
  } catch {
    // The properties cannot be read: described by its type.
  }
  return nameOf(thrown);
}

function nameOf(thrown: unknown): string {
  try {
    if (!(thrown instanceof Error)) return `a value of type ${typeof thrown}`;
    const { name } = thrown;
    return typeof name === 'string' && /^\w{1,64}$/.test(name) ? name : 'an error';
  } catch {
    // A proxy may throw even here.
    return `a value of type ${typeof thrown}`;
  }
}

function outcomeOf(given: unknown): StepOutcome {
  if (typeof given !== 'object' || given === null) throw new Fault(`it is ${kindOf(given)}`);
  const members = given as Readonly<Record<string, unknown>>;
  const { kind } = members;
  if (kind === 'success') return { kind, output: plainJson('output', members.output) };
  if (kind !== 'failure') throw new Fault('it is neither a success nor a failure');
  const { retryable, message, details, code, retryAfterMs, isKnown } = members;
  if (typeof message !== 'string') throw new Fault('it is a failure without a message');
  const waitMs = retryAfterMs as number;
  const isWait = Number.isSafeInteger(waitMs) && waitMs > 0 && waitMs <= RETRY_AFTER_MS_MAX;
  const failure = {
    kind,
    retryable: retryable === true,
    message: fitText(message),
    ...(isWait ? { retryAfterMs: waitMs } : {}),
    ...(isFailureCode(code) ? { code } : {}),
    ...(isKnown === true ? { isKnown: true } : {}),
  } as const;
  if (details === undefined) return failure;
  const read = plainJson('details', details);
  if (!isJsonObject(read)) throw new Fault('its details are not an object');
  return { ...failure, details: read };
}

function fitText(text: string): string {
  return clip(text, MESSAGE_LENGTH_MAX).toWellFormed().replaceAll('\0', '\ufffd');
}

interface Walk {
  /** Keys and indexes from the root to the current value. */
  readonly path: (string | number)[];
  charactersLeft: number;
}

/** A copy of the value that reads each property once. @throws Fault */
function plainJson(root: string, value: unknown): JsonValue {
  return copy(value, { path: [root], charactersLeft: OUTPUT_CHARACTERS_MAX });
}

function copy(value: unknown, walk: Walk): JsonValue {
  if (typeof value === 'string') return copyText(value, walk);
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new Fault(`${place(walk)} is ${value}`);
  }
  if (value === null || typeof value === 'number' || typeof value === 'boolean') {
    spend(walk, 5);
    return value;
  }
  if (typeof value !== 'object') throw new Fault(`${place(walk)} is ${kindOf(value)}`);
  if (walk.path.length > OUTPUT_DEPTH_MAX) {
    throw new Fault(`a cycle or more than ${OUTPUT_DEPTH_MAX} levels in its ${walk.path[0]}`);
  }
  spend(walk, 2);
  return Array.isArray(value) ? copyItems(value, walk) : copyMembers(value, walk);
}

function copyText(text: string, walk: Walk): string {
  spend(walk, text.length + 2);
  if (text.includes('\0')) throw new Fault(`${place(walk)} holds the character U+0000`);
  if (!text.isWellFormed()) throw new Fault(`${place(walk)} holds half of a surrogate pair`);
  return text;
}

function copyItems(items: readonly unknown[], walk: Walk): JsonValue[] {
  const { length } = items;
  const copied: JsonValue[] = [];
  for (let i = 0; i < length; i += 1) {
    spend(walk, 1);
    walk.path.push(i);
    copied.push(copy(items[i], walk));
    walk.path.pop();
  }
  return copied;
}

function copyMembers(object: object, walk: Walk): JsonObject {
  const prototype: unknown = Object.getPrototypeOf(object);
  if (prototype !== Object.prototype && prototype !== null) {
    throw new Fault(`${place(walk)} is an object of a class`);
  }
  const members: [string, JsonValue][] = [];
  for (const key of Object.keys(object)) {
    walk.path.push(key);
    members.push([copyText(key, walk), copy((object as Record<string, unknown>)[key], walk)]);
    walk.path.pop();
  }
  // fromEntries defines own properties, `__proto__` too.
  return Object.fromEntries(members);
}

function spend(walk: Walk, characters: number): void {
  walk.charactersLeft -= characters;
  if (walk.charactersLeft >= 0) return;
  throw new Fault(`more than 10 MiB in its ${walk.path[0]}`);
}

function kindOf(value: unknown): string {
  return value === undefined || value === null ? String(value) : `a ${typeof value}`;
}

/** The current position, such as `output.rows.3.price`; a long path is cut. */
function place({ path }: Walk): string {
  return fitText(clip(path.join('.')));
}
