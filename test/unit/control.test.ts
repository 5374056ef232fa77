/** Calls of the control plane between threads: given up in time, but for those that wait for a database. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { linkControl, serveControl } from '../../actors/runtime/control.js';

test('a call without an answer is given up, and one that waits for the database is not', async () => {
  const { port1, port2 } = new MessageChannel();
  let give: (text: string) => void = () => undefined;
  const answer = new Promise<string>((resolve) => {
    give = resolve;
  });
  const surface = {
    quick: () => new Promise<void>(() => undefined),
    patient: () => answer,
  };
  serveControl(surface, port2);
  const link = linkControl<typeof surface>(port1, 1, ['patient']);
  const waiting = link.remote.patient();
  await assert.rejects(link.remote.quick(), /no answer in time/);
  give('done');
  assert.equal(await waiting, 'done');
  link.close('over');
  port2.close();
});
