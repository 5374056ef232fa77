/**
 * What a handler gave or threw, as an outcome that can be stored. Handlers are code that the engine
 * does not trust: what they return may be cyclic, endless, a proxy, or have getters that throw. So it
 * is looked at once, within bounds, and copied; whatever is not plain JSON fails the one step that
 * gave it, for good, with a reason. Pure, and never throws.
 */

import { isFailureCode } from '../../schema/failure.js';
import { clip } from '../base/bounds.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json.js';
import { permanentFailure, type StepOutcome } from '../core/builtin.js';
import { RETRY_AFTER_MS_MAX } from './http-answer.js';

/**
 * In characters of JSON, roughly. The largest that a real handler gives is an answer of 10 MiB to
 * http_request, and its headers around it.
 */
export const OUTPUT_CHARACTERS_MAX = 10 * 1024 * 1024 + 64 * 1024;

/** What the entry check admits too: deeper values cannot be stored. A cycle is endlessly deep. */
export const OUTPUT_DEPTH_MAX = 256;

/** Messages are shown in lists; longer ones are cut. */
const MESSAGE_LENGTH_MAX = 1_000;

/** Of a stack in the log. */
const STACK_LENGTH_MAX = 10_000;

/** Why what a handler gave is of no use; never leaves this module. */
class Fault extends Error {}

/** @param given what the handler's promise was fulfilled with */
export function readOutcome(handler: string, given: unknown): StepOutcome {
  try {
    return outcomeOf(given);
  } catch (thrown) {
    const fault = thrown instanceof Fault ? thrown.message : `reading it threw ${nameOf(thrown)}`;
    return crashed(`${handler} gave no usable outcome: ${fault}`);
  }
}

/** The text of what was thrown stays in the log: it may name what is not for the workflow's eyes. */
export function thrownOutcome(handler: string, thrown: unknown): StepOutcome {
  return crashed(`${handler} threw ${nameOf(thrown)}; see the log`);
}

function crashed(message: string): StepOutcome {
  return permanentFailure(message, undefined, 'handler_crashed');
}

/** For the log: the stack of an error, and no more than the type of anything else. */
export function describeThrown(thrown: unknown): string {
  try {
    if (thrown instanceof Error) return clip(String(thrown.stack), STACK_LENGTH_MAX);
  } catch {
    // An error whose properties cannot be read is described by its type.
  }
  return nameOf(thrown);
}

function nameOf(thrown: unknown): string {
  try {
    if (!(thrown instanceof Error)) return `a value of type ${typeof thrown}`;
    const { name } = thrown;
    return typeof name === 'string' && /^\w{1,64}$/.test(name) ? name : 'an error';
  } catch {
    // A proxy may even throw when it is asked what it is.
    return `a value of type ${typeof thrown}`;
  }
}

function outcomeOf(given: unknown): StepOutcome {
  if (typeof given !== 'object' || given === null) throw new Fault(`it is ${kindOf(given)}`);
  const { kind } = given as { kind?: unknown };
  if (kind === 'success') {
    const { output } = given as { output?: unknown };
    return { kind, output: plainJson('output', output) };
  }
  if (kind !== 'failure') throw new Fault('it is neither a success nor a failure');
  const { retryable, message, details, code, retryAfterMs, isKnown } = given as Record<
    string,
    unknown
  >;
  if (typeof message !== 'string') throw new Fault('it is a failure without a message');
  const failure = {
    kind,
    retryable: retryable === true,
    message: fitText(message),
    ...(isWait(retryAfterMs) ? { retryAfterMs } : {}),
    ...(isFailureCode(code) ? { code } : {}),
    ...(isKnown === true ? { isKnown: true } : {}),
  } as const;
  if (details === undefined) return failure;
  const read = plainJson('details', details);
  if (!isJsonObject(read)) throw new Fault('its details are not an object');
  return { ...failure, details: read };
}

/** A wait that a timer can hold. */
function isWait(ms: unknown): ms is number {
  return Number.isSafeInteger(ms) && (ms as number) > 0 && (ms as number) <= RETRY_AFTER_MS_MAX;
}

/** Text that every row can hold. */
function fitText(text: string): string {
  return wellFormed(clip(text, MESSAGE_LENGTH_MAX)).replaceAll('\0', '\ufffd');
}

/** `String.prototype.toWellFormed` is in Node 20 but not yet in the library of ES2023. */
function wellFormed(text: string): string {
  return (text as string & { toWellFormed(): string }).toWellFormed();
}

// ---------------------------------------------------------------- plain JSON

interface Walk {
  /** Keys and indexes from the outermost value to the one that is looked at. */
  readonly path: (string | number)[];
  charactersLeft: number;
}

/** A copy of the value, each of whose properties was read once. @throws Fault */
function plainJson(root: string, value: unknown): JsonValue {
  return copy(value, { path: [root], charactersLeft: OUTPUT_CHARACTERS_MAX });
}

function copy(value: unknown, walk: Walk): JsonValue {
  switch (typeof value) {
    case 'string':
      return copyText(value, walk);
    case 'number':
      if (!Number.isFinite(value)) throw new Fault(`${place(walk)} is ${value}`);
      spend(walk, 5);
      return value;
    case 'boolean':
      spend(walk, 5);
      return value;
    case 'object':
      if (value === null) {
        spend(walk, 5);
        return null;
      }
      if (walk.path.length > OUTPUT_DEPTH_MAX) {
        throw new Fault(`a cycle or more than ${OUTPUT_DEPTH_MAX} levels in its ${walk.path[0]}`);
      }
      spend(walk, 2);
      return Array.isArray(value) ? copyItems(value, walk) : copyMembers(value, walk);
    default:
      throw new Fault(`${place(walk)} is ${kindOf(value)}`);
  }
}

function copyText(text: string, walk: Walk): string {
  spend(walk, text.length + 2);
  if (text.includes('\0')) throw new Fault(`${place(walk)} holds the character U+0000`);
  if (wellFormed(text) !== text) throw new Fault(`${place(walk)} holds half of a surrogate pair`);
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

/** Where the walk is, such as `output.rows.3.price`; a long path is shown by its beginning. */
function place({ path }: Walk): string {
  return fitText(clip(path.join('.')));
}
