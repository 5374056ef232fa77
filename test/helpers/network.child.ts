/**
 * Loaded into a server under test before anything else (`--import`): a network of its own. Names
 * answer what NETWORK_NAMES says, each connection that a request of a workflow is about to make is
 * written to stderr, and those to the public address end at loopback. Connections without a lookup
 * of their own, such as those to the database, are left alone.
 */

import dns, { type LookupAddress } from 'node:dns';
import dnsPromises from 'node:dns/promises';
import { writeSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { isIP, type LookupFunction, Socket } from 'node:net';
import { PUBLIC_ADDRESS } from './ssrf-vectors.js';

type Answers = readonly (readonly string[])[];

const names: Readonly<Record<string, Answers>> = JSON.parse(process.env.NETWORK_NAMES ?? '{}');
/** The same in every thread, where `process.stderr` has no descriptor. */
const STDERR = 2;
const asked = new Map<string, number>();

/** The next answer of a name; nobody else knows any name. */
async function lookup(name: string): Promise<LookupAddress[]> {
  const answers = Object.hasOwn(names, name) ? names[name] : undefined;
  const turn = asked.get(name) ?? 0;
  asked.set(name, turn + 1);
  const addresses = answers?.[Math.min(turn, answers.length - 1)];
  if (addresses === undefined)
    throw Object.assign(new Error('no such name'), { code: dns.NOTFOUND });
  return addresses.map((address) => ({ address, family: isIP(address) }));
}

Object.assign(dnsPromises, { lookup });
syncBuiltinESMExports();

interface Target {
  host?: string;
  lookup?: LookupFunction;
}

const connect = Socket.prototype.connect as (...given: unknown[]) => Socket;

Socket.prototype.connect = function (this: Socket, ...given: unknown[]): Socket {
  // `net.connect` hands its arguments on as one list.
  const target = (Array.isArray(given[0]) ? given[0][0] : given[0]) as Target | null;
  if (typeof target === 'object' && typeof target?.lookup === 'function') divert(target);
  return Reflect.apply(connect, this, given);
};

/** What is about to be connected to was judged by then: a literal, or what the lookup gave. */
function divert(target: Target): void {
  const { host = '', lookup: find } = target;
  if (isIP(host) !== 0) target.host = arrive(host);
  if (find === undefined) return;
  target.lookup = (name, options, callback) =>
    find(name, options, (error, found, family) => {
      if (error !== null) callback(error, found, family);
      else if (typeof found === 'string') callback(null, arrive(found), family);
      else
        callback(
          null,
          found.map((entry) => ({ ...entry, address: arrive(entry.address) })),
        );
    });
}

/** Written at once, past the streams of threads, so that no line comes late. */
function arrive(address: string): string {
  writeSync(STDERR, `${JSON.stringify({ msg: 'connecting', address })}\n`);
  return address === PUBLIC_ADDRESS ? '127.0.0.1' : address;
}
