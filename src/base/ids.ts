/**
 * Identifiers that contain their placement: the last 16 bits of an instance's id are its routing hash. Its tasks and
 * rows repeat these bits, so that every thread can find the owning shard. Pure.
 */

import { hash } from 'node:crypto';
import type { UnixMs } from './time.js';

/** Ids of one generator sort in the order in which they were created. */
export interface IdGenerator {
  /** @param route the 16 routing bits of the owner, 0 … 65535 */
  next(route: number): string;
  /** The first id of a series, whose others differ in their fourth group: 8000, 8001, … up to bfff. */
  first(route: number): string;
}

/** Further ids of a millisecond use the time of the next one. */
const IDS_PER_MS = 0x1000;
const FIRST_ID = '00000000-0000-7000-8000-000000000000';

/** UUIDv7: 48 bits of time, a 12-bit counter per millisecond, 46 random bits, 16 routing bits. */
export function createIdGenerator(now: () => UnixMs, random32: () => number): IdGenerator {
  let lastMs = 0;
  let counter = 0;
  // Digits are written in place: concatenating strings takes five times the memory.
  const digits = Buffer.from(FIRST_ID, 'latin1');
  const make = (route: number, variant: number) => {
    const ms = Math.floor(now());
    if (ms > lastMs) {
      lastMs = ms;
      counter = 0;
      writeTime(digits, lastMs);
    } else if (++counter >= IDS_PER_MS) {
      lastMs += 1;
      counter = 0;
      writeTime(digits, lastMs);
    }
    writeHex(digits, 15, 3, counter);
    writeHex(digits, 19, 4, variant);
    writeHex(digits, 24, 8, random32());
    writeHex(digits, 32, 4, route);
    return digits.toString('latin1');
  };
  return {
    next: (route) => make(route, 0x8000 | (random32() & 0x3fff)),
    first: (route) => make(route, 0x8000),
  };
}

function writeTime(digits: Uint8Array, ms: UnixMs): void {
  writeHex(digits, 0, 8, Math.floor(ms / 0x1_0000));
  writeHex(digits, 9, 4, ms & 0xffff);
}

/** Writes the lowest `count` hexadecimal digits of a 32-bit value. */
function writeHex(digits: Uint8Array, at: number, count: number, value: number): void {
  let rest = value;
  for (let i = at + count - 1; i >= at; i -= 1) {
    const digit = rest & 15;
    digits[i] = digit < 10 ? 48 + digit : 87 + digit;
    rest >>>= 4;
  }
}

/** The same idempotency key always names the same instance, and with it the same actor. */
export function keyedInstanceId(tenantId: string, idempotencyKey: string): string {
  return hashedId('', tenantId, idempotencyKey);
}

export function concurrencyKeyId(tenantId: string, concurrencyKey: string): string {
  return hashedId('concurrency:', tenantId, concurrencyKey);
}

/** The actor that puts off starts under this key. */
export function throttleId(tenantId: string, key: string): string {
  return hashedId('throttle:', tenantId, key);
}

export function rateLimitId(tenantId: string, key: string): string {
  return hashedId('rate:', tenantId, key);
}

/** The actor of the events with this name and correlation key; undefined: without a key. */
export function eventKeyId(tenantId: string, name: string, key: string | undefined): string {
  const named = `${Buffer.byteLength(name)}:${name}`;
  return hashedId('events:', tenantId, key === undefined ? named : `${named}=${key}`);
}

/** All events with this name, whatever their correlation keys are. */
export function eventNameId(tenantId: string, name: string): string {
  return hashedId('event-name:', tenantId, name);
}

/** The actor that collects creations of a sequence. @param named what they share besides the tenant, and their key */
export function startKeyId(tenantId: string, named: readonly (string | null)[]): string {
  return hashedId('start:', tenantId, JSON.stringify(named));
}

/** The same producer id always names the same event, whatever its name and key are. */
export function eventId(tenantId: string, producerEventId: string): string {
  return hashedId('event:', tenantId, producerEventId);
}

/** The instance of a fire time. It has the routing bits of its schedule, to be on the same shard. */
export function firedInstanceId(scheduleId: string, at: UnixMs): string {
  return hashedId('cron:', scheduleId, String(at)).slice(0, -4) + scheduleId.slice(-4);
}

/** The instance of a manual run that was requested with an idempotency key. */
export function askedRunId(scheduleId: string, key: string): string {
  return hashedId('cron-run:', scheduleId, key).slice(0, -4) + scheduleId.slice(-4);
}

/** @param number counts all children that the parent has requested */
export function childInstanceId(
  parentId: string,
  blockId: string,
  iteration: string,
  number: number,
): string {
  return hashedId('child:', parentId, `${iteration}/${number}/${blockId}`);
}

/**
 * The same for all attempts of one execution of a step; different for each iteration and each restart in it.
 * @param iteration the path of loop counters, or its substitute
 * @param runs the number of restarts of the step in the iteration
 */
export function stepIdempotencyKey(
  instanceId: string,
  blockId: string,
  iteration: string,
  runs: number,
): string {
  return hashedId('step:', instanceId, `${iteration}/${runs}/${blockId}`);
}

function hashedId(space: string, tenantId: string, key: string): string {
  return hashedUuid(`${space}${Buffer.byteLength(tenantId)}:${tenantId}${key}`);
}

/** A UUIDv8 of the SHA-256 of a text. */
export function hashedUuid(text: string): string {
  // One character for each byte.
  const bytes = hash('sha256', text, 'binary');
  for (let i = 0; i < PLACES.length; i += 1) writeHex(HASHED, PLACES[i]!, 2, bytes.charCodeAt(i));
  HASHED[14] = DIGIT_8;
  writeHex(HASHED, 19, 1, 0x8 | ((bytes.charCodeAt(8) >> 4) & 0x3));
  return HASHED.toString('latin1');
}

const DIGIT_8 = 0x38;
const HASHED = Buffer.from(FIRST_ID, 'latin1');
/** Where the digits of each byte of an id are. */
const PLACES = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

export function uuidText(hex: string): string {
  const text = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  // A string of its own: the pieces that it was made of would take six times the memory as long as it is kept.
  return Buffer.from(text, 'latin1').toString('latin1');
}

/** The lowest id that a generator can create at this time. */
export function firstIdAt(now: UnixMs): string {
  const digits = Buffer.from(FIRST_ID, 'latin1');
  writeTime(digits, Math.floor(now));
  return digits.toString('latin1');
}

/** The time in an id that a generator created. */
export function timeOfId(id: string): UnixMs {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

export function routeOf(id: string): number {
  return Number.parseInt(id.slice(-4), 16);
}

/** The routing bits of an actor that has a name, such as a queue (FNV-1a, folded). */
export function routeOfName(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) {
    hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  }
  return ((hash >>> 16) ^ hash) & 0xffff;
}

export function shardOf(route: number, shards: number): number {
  return route % shards;
}

/** Random routing bits that fall on the given shard. */
export function routeForShard(shard: number, shards: number, random32: () => number): number {
  const slots = Math.floor((0x1_0000 - shard - 1) / shards) + 1;
  return (random32() % slots) * shards + shard;
}
