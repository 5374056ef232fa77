/**
 * The attacker's process: one attack; the sink that never answers is here, too. It has the cores that nobody else
 * wants, as if it were a machine of its own: what is measured is what the server does to tenant B, and not what
 * the attacker's client takes from it.
 */

import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { ATTACKS, Attacker, type AttackPlace } from './attacks.js';
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
