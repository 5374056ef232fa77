/** Tabs that share what needs doing once: one of them leads, and another one does when it is gone. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Election, type TabMessage } from '../src/api/election.ts';
import { groupOf } from '../src/api/shared-changes.ts';

/** One lock, as browsers have it: given to one after the other, and taken away from whoever has it. */
class Lock {
  #held: { end: (error: Error) => void } | undefined;
  readonly #waiting: { grant: () => void }[] = [];

  readonly request = ((_name: string, options: LockOptions, hold: () => Promise<void>) =>
    new Promise<void>((resolve, reject) => {
      const grant = () => {
        const own = { end: reject };
        this.#held = own;
        void hold().then(() => {
          resolve();
          if (this.#held === own) this.#next();
        });
      };
      options.signal?.addEventListener('abort', () => {
        const at = this.#waiting.findIndex((one) => one.grant === grant);
        if (at >= 0) this.#waiting.splice(at, 1);
        reject(new Error('aborted'));
      });
      if (options.steal) {
        this.#held?.end(new Error('stolen'));
        grant();
      } else if (this.#held === undefined) grant();
      else this.#waiting.push({ grant });
    })) as LockManager['request'];

  #next(): void {
    this.#held = undefined;
    this.#waiting.shift()?.grant();
  }
}

interface Tab {
  readonly election: Election;
  /** It says and hears nothing, and its timers do not run. */
  isFrozen: boolean;
}

/** Tabs that are opened one after the other, which receive each other at once. */
function tabsOf(t: TestContext, count: number, locks: Lock | undefined) {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  const tabs: Tab[] = [];
  const open = (id: string) => {
    const others = () => tabs.filter((one) => one !== tab && !one.isFrozen);
    const send = (message: TabMessage) => {
      if (!tab.isFrozen) for (const { election } of others()) election.receive(message);
    };
    const nothing = () => undefined;
    const election = new Election({
      ...{ id, send, locks, name: 'tenant', onLead: nothing, onAsked: nothing },
    });
    const tab: Tab = { election, isFrozen: false };
    tabs.push(tab);
    election.start();
  };
  for (let at = 0; at < count; at += 1) open(`tab-${at}`);
  t.after(() => {
    for (const { election } of tabs) election.stop();
  });
  return {
    tabs,
    /** What lies between is done at once. */
    pass: async (ms: number) => {
      for (let at = 0; at < ms; at += 100) {
        t.mock.timers.tick(100);
        for (let turn = 0; turn < 5; turn += 1) await null;
      }
    },
    leaders: () => tabs.filter(({ election, isFrozen }) => election.isLeading && !isFrozen),
  };
}

for (const [kind, lockOf] of [
  ['with locks', () => new Lock()],
  ['without locks', () => undefined],
] as const) {
  test(`${kind}, one of eight tabs leads, and stays`, async (t) => {
    const { pass, leaders } = tabsOf(t, 8, lockOf());
    await pass(500);
    const [first, ...others] = leaders();
    assert.ok(first);
    assert.equal(others.length, 0);
    await pass(60_000);
    assert.deepEqual(leaders(), [first]);
  });

  test(`${kind}, another tab leads within a second when the leader is closed`, async (t) => {
    const { tabs, pass, leaders } = tabsOf(t, 8, lockOf());
    await pass(500);
    for (let left = 7; left > 0; left -= 1) {
      const [leader] = leaders();
      leader!.election.stop();
      tabs.splice(tabs.indexOf(leader!), 1);
      await pass(1_000);
      assert.equal(leaders().length, 1, `${left} tabs are left`);
    }
  });

  test(`${kind}, a tab that is frozen does not lead for ever, and does not lead again`, async (t) => {
    const { pass, leaders } = tabsOf(t, 3, lockOf());
    await pass(500);
    const [frozen] = leaders();
    frozen!.isFrozen = true;
    await pass(8_000);
    const [next, ...others] = leaders();
    assert.ok(next && next !== frozen);
    assert.equal(others.length, 0);
    frozen!.isFrozen = false;
    await pass(8_000);
    assert.equal(leaders().length, 1);
  });
}

test('only tabs with the same engine, tenant and key share, and no name has the key in it', async () => {
  const groups = await Promise.all([
    groupOf('https://a', 'acme', 'sk_1'),
    groupOf('https://a', 'acme', 'sk_2'),
    groupOf('https://a', 'acme', undefined),
    groupOf('https://a', 'other', 'sk_1'),
    groupOf('https://b', 'acme', 'sk_1'),
  ]);
  assert.equal(new Set(groups).size, groups.length);
  assert.equal(groups[0], await groupOf('https://a', 'acme', 'sk_1'));
  assert.ok(groups.every((group) => !group.includes('sk_')));
});
