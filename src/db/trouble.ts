/**
 * Classifies errors of the database by SQLSTATE: whether the data or the database is at fault, and the
 * messages for callers, which never name tables or hosts. Pure.
 */

import type { TroubleKind } from '../../schema/system.js';
import { conflict, EngineError } from '../base/errors.js';

const RETRY_AFTER_MS = 1_000;
/** The SQLSTATE of `execution.update` when its row has another version. */
const STALE = '22P02';
const UNIQUE_VIOLATION = '23505';

export function refusedUnit(sqlState: string, reason: string): EngineError {
  if (sqlState === UNIQUE_VIOLATION) return conflict('a row with this key exists already');
  if (sqlState === STALE) return conflict('it was changed meanwhile');
  const message = `invalid argument: the database refused the data: ${reason}`;
  return new EngineError('ENG_REFUSED_DATA', message);
}

/**
 * Whether the data is at fault: values (22), constraints (23), data that is too large or too deep (54), or
 * in an encoding that the server cannot convert (0A000, which has other meanings too). Any other SQLSTATE
 * is about the database: the unit is retried and fails nothing.
 */
export function isFaultOfData(sqlState: string, message: string): boolean {
  return /^(22|23|54)/.test(sqlState) || (sqlState === '0A000' && /conversion/.test(message));
}

const TROUBLE_TEXTS: Readonly<Record<TroubleKind, string>> = {
  unreachable: 'it cannot be reached',
  'disk-full': 'its disk is full',
  resources: 'it lacks resources',
  descriptors: 'too many files are open',
  connections: 'it has no connection to spare',
  rights: 'a right is missing',
  schema: 'its schema is not the one that is needed',
  'read-only': 'it is read-only',
  replica: 'its replica does not confirm',
  lease: 'another engine may own it',
  other: 'it fails',
};

export interface DatabaseTrouble {
  readonly kind: TroubleKind;
  /** Absent if no server responded. */
  readonly sqlState?: string;
  readonly message: string;
}

/** By SQLSTATE or its class. */
const TROUBLES: Readonly<Record<string, TroubleKind>> = {
  '08': 'unreachable',
  '57P01': 'unreachable',
  '57P02': 'unreachable',
  '57P03': 'unreachable',
  53: 'resources',
  53000: 'descriptors',
  53100: 'disk-full',
  53300: 'connections',
  28: 'rights',
  42501: 'rights',
  '3D': 'schema',
  '3F': 'schema',
  42: 'schema',
  25006: 'read-only',
};

/** No class begins with E, unlike the codes of sockets, such as EPIPE. */
const SQLSTATE = /^(?!E)[0-9A-Z]{5}$/;

/** @param code a SQLSTATE, or the code of a socket error, such as ECONNREFUSED */
export function databaseTrouble(code: string | undefined, message: string): DatabaseTrouble {
  if (code === 'EMFILE' || code === 'ENFILE') return { kind: 'descriptors', message };
  if (code === undefined || !SQLSTATE.test(code)) return { kind: 'unreachable', message };
  const kind = TROUBLES[code] ?? TROUBLES[code.slice(0, 2)] ?? 'other';
  return { kind, sqlState: code, message };
}

export function troubleOf(error: unknown): DatabaseTrouble {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  return databaseTrouble(typeof code === 'string' ? code : undefined, String(message));
}

/** Connections are refused, timed out or cut, or the server starts, stops or has no free connection. */
export function isUnavailable(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string') return /^(E[A-Z]+|08...|53...|57P0[123])$/.test(code);
  // The message of a server without TLS has these words too, but it is permanent.
  return error instanceof Error && /^(?!.*SSL).*(?:connection|timeout)/i.test(error.message);
}

export function databaseDown(what: string, { kind, sqlState }: DatabaseTrouble, cause?: unknown) {
  const state = sqlState === undefined ? '' : ` (${sqlState})`;
  const message = `unavailable: the database ${what}: ${TROUBLE_TEXTS[kind]}${state}`;
  return new EngineError('ENG_DATABASE_DOWN', message, RETRY_AFTER_MS, cause);
}

/** Only a full disk needs an operator; for anything else changes wait. */
export function stallOf(trouble: DatabaseTrouble) {
  const ofReads = databaseDown('takes no writes', trouble);
  if (trouble.kind !== 'disk-full') return { ofReads };
  const unknown =
    'the change may still be made: ask again, with an idempotency key where there is one';
  const { code, message, retryAfterMs } = ofReads;
  return { ofReads, ofChanges: new EngineError(code, `${message}; ${unknown}`, retryAfterMs) };
}
