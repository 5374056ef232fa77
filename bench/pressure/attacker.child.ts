/**
 * The process of one attack, with the sink that never answers. It has the lowest priority, so that the others are
 * slowed down by the server's work and not by the attacker's client.
 */

import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { Attacker, type AttackPlace } from './attacker.js';
import { ATTACKS } from './attacks.js';
import { setPriority } from './priority.js';

export interface AttackOrder extends Omit<AttackPlace, 'slowUrl'> {
  readonly name: string;
  /** Of this process on the cores. */
  readonly priority: number;
}

const [order] = (await once(process, 'message')) as [AttackOrder];
const { name, priority, ...place } = order;
setPriority(priority);
const sink = createServer((socket) => {
  socket.on('error', () => undefined);
  socket.resume();
});
sink.listen(0, '127.0.0.1');
await once(sink, 'listening');
const { port } = sink.address() as AddressInfo;
const attacker = new Attacker({ ...place, slowUrl: `http://127.0.0.1:${port}/` });
await ATTACKS[name]!.begin(attacker);
process.send?.('begun');
await once(process, 'message');
process.send?.(await attacker.stop(), undefined, undefined, () => process.exit(0));
