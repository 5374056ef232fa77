/** More connections than the server may open files: what it says to them, what it goes on doing, and what is left of it. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { eventually, startApi, step, type Tenant } from '../helpers/api.js';
import { BACKENDS } from '../helpers/backends.js';
import { createClient, expectStatus } from '../helpers/client.js';

const DESCRIPTORS = 256;
const ATTACKERS = 3 * DESCRIPTORS;
/** Each may have some of the connections, all together more than there are. */
const ADDRESSES = 8;
/** Of its processor time ours, while there is nothing to do: a loop that spins takes as much as we do. */
const SHARE_MAX = 0.5;
const BUSY_MS = 500;
/** More often than a connection that is idle is given up. */
const ROUND_MS = 50;

const skip = process.platform !== 'linux' && 'there is no /proc here';

/** Of all threads of the process, in ms. */
function cpuMsOfProcess(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  const ticks = Number(fields[11]) + Number(fields[12]);
  return ticks * 10;
}

/** What another process takes of the processor, beside this one, which takes all it gets. */
async function shareOf(pid: number): Promise<number> {
  const theirs = cpuMsOfProcess(pid);
  const ours = process.cpuUsage();
  let spent = 0;
  while (spent < BUSY_MS) {
    const { user, system } = process.cpuUsage(ours);
    spent = (user + system) / 1_000;
    // What the server says to its clients is heard meanwhile.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return (cpuMsOfProcess(pid) - theirs) / spent;
}

class Crowd {
  readonly #sockets = new Set<Socket>();
  answered = 0;

  constructor(port: number) {
    for (let i = 0; i < ATTACKERS; i += 1) {
      const localAddress = `127.0.0.${2 + (i % ADDRESSES)}`;
      const socket = connect({ port, host: '127.0.0.1', localAddress });
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('data', () => {
        this.answered += 1;
      });
      socket.once('close', () => this.#sockets.delete(socket));
    }
  }

  /** Connections that are not closed. */
  get size(): number {
    return this.#sockets.size;
  }

  leave(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** A client that was there before: writes, reads of rows, and the state of the database, one after the other. */
class Service {
  readonly #stopping = new AbortController();
  readonly #done: Promise<number>;

  constructor(tenant: Tenant, sequence: string) {
    this.#done = this.#serve(tenant, sequence);
    // Whoever ends it hears of it.
    this.#done.catch(() => undefined);
  }

  /** Rounds in which all were served. */
  end(): Promise<number> {
    this.#stopping.abort();
    return this.#done;
  }

  async #serve(tenant: Tenant, sequence: string): Promise<number> {
    let rounds = 0;
    for (; !this.#stopping.signal.aborted; rounds += 1) {
      await tenant.create(sequence);
      for (const path of ['/instances', '/health/ready']) {
        expectStatus(await tenant.get(path), 200);
      }
      await pause(ROUND_MS);
    }
    return rounds;
  }
}

for (const backend of BACKENDS) {
  describe(`at the limit of open files, backend ${backend}`, { skip }, () => {
    test('connections are refused, the others and the database are served, nothing spins, and calm returns', async (t) => {
      const api = await startApi({
        descriptorsMax: DESCRIPTORS,
        env: { ENGINE_HTTP_BACKEND: backend, ENGINE_SHARDS: '1' },
      });
      t.after(() => api.stop());
      const told = api.engine.logs().find(({ descriptors }) => descriptors === DESCRIPTORS);
      const max = Number(told?.max);
      assert.ok(max >= DESCRIPTORS / 4 && max <= DESCRIPTORS / 2, 'it says how many it takes');
      const tenant = api.tenant();
      const sequence = await tenant.sequence([step('a', 'noop')]);
      const service = new Service(tenant, sequence);
      const crowd = new Crowd(api.engine.port);
      t.after(() => crowd.leave());
      await eventually(() => assert.ok(crowd.size < max, `${crowd.size} are open`));
      assert.ok(crowd.size > max / 2, `only ${crowd.size} are open`);
      assert.ok(crowd.answered > 0, 'some were told why');
      const share = await shareOf(api.engine.pid);
      assert.ok(share < SHARE_MAX, `takes ${share} of what this process takes`);
      assert.ok((await service.end()) > 0, 'it is served all the time');
      crowd.leave();
      const late = createClient({ url: api.url });
      t.after(() => late.close());
      await eventually(async () => assert.equal((await late.get('/health/ready')).status, 200));
      assert.ok((await shareOf(api.engine.pid)) < SHARE_MAX);
      assert.equal(api.engine.isRunning(), true);
    });
  });
}
