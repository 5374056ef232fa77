/**
 * The entry of the attacker's thread: its work does not delay the clock that tenant B is measured by. One attack;
 * the sink that never answers is here, too.
 */

import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import type { AttackName } from './attack-names.js';
import { ATTACKS, Attacker, type AttackPlace } from './attacks.js';

export interface AttackOrder extends Omit<AttackPlace, 'slowUrl'> {
  readonly name: AttackName;
}

const { name, ...place } = workerData as AttackOrder;
const sink = createServer((socket) => {
  socket.on('error', () => undefined);
  socket.resume();
});
sink.listen(0, '127.0.0.1');
await once(sink, 'listening');
const { port } = sink.address() as AddressInfo;
const attacker = new Attacker({ ...place, slowUrl: `http://127.0.0.1:${port}/` });
await ATTACKS[name].begin(attacker);
parentPort?.postMessage('begun');
parentPort?.once('message', () => {
  void attacker.stop().then((statuses) => parentPort?.postMessage(statuses));
});
