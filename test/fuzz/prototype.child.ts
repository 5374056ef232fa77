/**
 * Loaded into each thread of a server under test (`--import`): says on stderr when a property was
 * added to a prototype that everything shares, or one of theirs replaced.
 */

import { writeSync } from 'node:fs';

const LOOK_EVERY_MS = 200;
/** The same in every thread, where `process.stderr` has no descriptor. */
const STDERR = 2;
const WATCHED = [Object.prototype, Array.prototype, Function.prototype, String.prototype];

const inventory = () =>
  WATCHED.flatMap((prototype) =>
    Reflect.ownKeys(prototype).map((key) => {
      const { value, get } = Object.getOwnPropertyDescriptor(prototype, key) ?? {};
      return [key, value, get] as const;
    }),
  );

let known = inventory();

function look(): void {
  const now = inventory();
  const isSame =
    now.length === known.length &&
    now.every((entry, index) => entry.every((part, at) => Object.is(part, known[index]?.[at])));
  if (isSame) return;
  known = now;
  writeSync(STDERR, `${JSON.stringify({ msg: 'a prototype was changed' })}\n`);
}

setInterval(look, LOOK_EVERY_MS).unref();
process.on('exit', look);
