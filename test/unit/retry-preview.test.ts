/** What is said before a retry about what it runs once more, held against what the evaluator does then. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { runsAgain, standsFor } from '../../actors/instance/core/retry-preview.js';
import { retryText } from '../../actors/instance/core/retry-words.js';
import type { Block, Hooks, SagaBlock } from '../../schema/blocks.js';
import { isEnded } from '../../schema/states.js';
import { recordOf } from '../../src/core/paths.js';
import type { Dispatch } from '../../src/core/progress.js';
import { contexts, trees } from '../helpers/block-trees.js';
import { byDepth } from '../helpers/depth.js';
import {
  failing,
  forEach,
  loop,
  type Player,
  parallel,
  play,
  tryCatch,
  work,
} from '../helpers/player.js';
import { check } from '../helpers/properties.js';
import { casesIn } from '../helpers/table.js';

const preview = ({ plan, snapshot }: Player) => runsAgain(plan, snapshot);

/** `kind path` of each block, with what repeats behind it, what stays, and how it ends. */
function told(player: Player): string {
  const { blocks, stays, repeats_effects, ends } = preview(player);
  const again = blocks.map(
    ({ kind, path, repeats }) => `${kind} ${path}${repeats.length > 0 ? ` (${repeats})` : ''}`,
  );
  const rest = [`stays ${stays.join(', ')}`, ...(ends ? [ends] : [])];
  return [again.join(', '), ...rest, ...(repeats_effects ? ['asks'] : [])].join('; ');
}

const pay = { id: 'pay', action: [work('charge'), work('bill')], compensation: work('refund') };
const send = { id: 'send', action: work('ship') };
const saga = (id: string, ...steps: SagaBlock['steps']): Block => ({ type: 'saga', id, steps });
const trip = saga('s', pay, send);
const child: Block = { type: 'sub_sequence', id: 'c', sequence_name: 'parcel' };
const kept = (id: string) => work(id, { cancellable: false });
const TIMED = { ...tryCatch('t', [work('charge')], [], [work('c')]), timeout: 1_000 } as Block;
const FLOWS: Record<string, Block[]> = {
  steps: [work('a'), work('b')],
  trip: [work('a'), trip],
  inner: [saga('o', { id: 'in', action: saga('i', { ...pay, action: work('charge') }, send) })],
  order: [tryCatch('t', [work('charge')], [work('a'), work('b')], [work('c'), work('d')])],
  guarded: [tryCatch('t', [work('charge')], [kept('a'), work('b')], [work('c')])],
  deep: [
    tryCatch(
      't',
      [work('charge')],
      [parallel('p', [kept('a')], [tryCatch('u', [work('d')], [], [work('e')])])],
    ),
  ],
  items: [loop('l', 'true', 2, [forEach('f', 'xs', [work('a'), work('b')], { concurrency: 2 })])],
  child: [child],
  bought: [saga('o', { ...pay, action: work('charge') }, { id: 'send', action: child })],
  caught: [tryCatch('t', [child], [work('a'), failing('no')]), work('b')],
  handled: [tryCatch('t', [child], []), work('b')],
  thrown: [
    saga('s', {
      id: 'pay',
      action: tryCatch('t', [work('charge')], [parallel('p', [failing('no')], [work('a')])]),
    }),
  ],
  timed: [TIMED],
  'timed in try': [tryCatch('o', [TIMED], [work('x')])],
};

describe('before a retry it is said', () => {
  for (const [what = '', flow = '', acts = '', says] of casesIn(`
that a step runs again, and what stays | steps | ok a, fail b | step b; stays a
that a compensated saga runs again as a whole | trip | ok a, ok charge, ok bill, fail ship, ok refund | saga s (s[0]/charge,s[0]/bill); stays a; asks
that what a saga owes comes first | trip | ok a, ok charge, ok bill, fail ship, fail refund | compensation s[0]/refund; stays a, s[0]/charge, s[0]/bill; failed
that its action cleans up first | inner | ok charge, fail ship, fail refund | compensation o[0]/i[0]/refund; stays o[0]/i[0]/charge; failed
that a saga repeats nothing of which nothing completed | trip | ok a, fail charge | saga s; stays a
with what a stopped saga goes on | trip | ok a, ok charge, stop | step s[0]/bill; stays a, s[0]/charge
that a finally list runs once more | order | fail charge, ok a, fail b, ok c, ok d | step t/b, finally t/c (t/c), finally t/d (t/d); stays t/a; asks
that what failed of a finally list runs | order | fail charge, ok a, ok b, ok c, fail d | finally t/d; stays t/a, t/b, t/c
that what was cancelled cleans up and ends | order | cancel, ok c, fail d | finally t/d; stays t/c; cancelled
that a block fails behind what was left of its finally list | order | fail charge, ok a, fail b, ok c, fail d | finally t/d; stays t/a, t/c; failed
nor where the block went well | order | ok charge, fail c | finally t/c; stays t/charge
that what timed out fails once it has cleaned up | timed | tick, fail c | finally t/c; stays ; failed
but not what is caught | timed in try | tick, fail c | finally o/t/c; stays
with which item and pass it goes on | items | ok a, fail a, ok b | step l[0]/f[1]/a; stays
that a catch list goes on behind a cancel, and its finally list runs once more | guarded | fail charge, fail a, cancel, ok c | step t/a, finally t/c (t/c); stays ; cancelled; asks
that a catch list that was cut off goes on | guarded | fail charge, cancel, fail a | step t/a; stays ; cancelled
that what is cleaned up in it comes first | deep | fail charge, fail a, cancel, fail e | step t/p/a, step t/p/u/d, finally t/p/u/e; stays ; cancelled
that a saga runs again whose catch list failed on purpose | thrown | fail charge, ok a | saga s (s[0]/t/p/a); stays ; asks
but not if something else in it failed, too | thrown | fail charge, fail a | step s[0]/t/p/no, step s[0]/t/p/a; stays ; failed
that a hook runs again | steps | cancel, wake | hook h; stays ; cancelled
that a child is retried | child | c failed | child c; stays
that another child is started | child | c gone | child c (c); stays ; asks
that a child cleans up first | bought | ok charge, c owes, ok refund | child o[0]/c; stays o[0]/charge, o[0]/refund; failed
that a saga starts another child for one that owes nothing | bought | ok charge, c failed, ok refund | saga o (o[0]/charge,o[0]/c); stays ; asks
that a child cleans up before its failure is handed on | caught | c owes, ok a | child t/c, step t/no; stays t/a
that none does that owes nothing | caught | c failed, ok a | step t/no; stays t/a
`)) {
    test(`${what}: ${acts}`, () => {
      const hooks: Hooks = { on_cancel: [{ type: 'step', id: 'h', handler: 'fail' }] };
      const player = play(FLOWS[flow]!, { data: { xs: [1, 2, 3] }, hooks });
      for (const act of acts.split(', ')) {
        if (act === 'stop') player.send({ kind: 'stop', state: 'failed' });
        else if (act.startsWith('c ')) endChild(player, act.slice(2));
        else player.after(act as 'wake');
      }
      assert.equal(player.state, 'failed');
      assert.equal(told(player).trim(), says);
    });
  }

  test('in sentences that name it', () => {
    const player = play([trip]).after('ok charge', 'ok bill', 'fail ship', 'ok refund');
    assert.equal(
      retryText(preview(player)),
      'Saga s runs again as a whole: what had completed (s[0]/charge, s[0]/bill) acts outside a second ' +
        'time. What is repeated has new idempotency keys.',
    );
  });

  for (const [stands = '', flow = '', acts = ''] of casesIn(`
waits | child |
takes | child | c failed
takes | bought | ok charge, c owes, ok refund
takes | caught | c owes, ok a
ended | bought | ok charge, c failed, ok refund
ended | caught | c failed, ok a
went_on | handled | c failed
ended | handled | c failed, ok b
`)) {
    test(`whether the parent ${stands} is said of its child: ${flow} ${acts}`, () => {
      const player = play(FLOWS[flow]!);
      const [first] = acts.split(', ');
      if (first === '') makeChild(player);
      for (const act of acts === '' ? [] : acts.split(', ')) {
        if (act.startsWith('c ')) endChild(player, act.slice(2));
        else player.after(act as 'wake');
      }
      const { plan, snapshot, children } = player;
      assert.equal(standsFor(plan, snapshot, children[0]!.child!), stands);
    });
  }

  function makeChild(player: Player) {
    const { node, iteration, attempt, child } = player.children[0]!;
    const step = { node, iteration, attempt };
    player.send({ kind: 'child.made', ...step, child: child! });
    return step;
  }

  function endChild(player: Player, how: string): void {
    const more = {
      ...(how !== 'gone' && { note: 'then' }),
      ...(how === 'owes' && { owes: true as const }),
    };
    const end = { kind: 'failed', code: 'child_failed', message: 'no', ...more } as const;
    player.send({ kind: 'child.ended', ...makeChild(player), end });
  }
});

// ---------------------------------------------------------------- against the evaluator

/** The block in its pass; of a saga all passes are one. */
function keyOf({ plan }: Player, { node, blockId, iteration }: Dispatch): string {
  const { loops } = plan.nodes[node]!;
  const passes = iteration.split('.').filter((_, at) => plan.nodes[loops[at]!]?.type !== 'saga');
  return `${blockId}@${passes.join('.')}`;
}

/** Not of an earlier pass of a saga, nor of a list that was begun anew since. */
function isPresent({ plan, snapshot: { execution } }: Player, { node, iteration, runs }: Dispatch) {
  const passes = iteration.split('.').map(Number);
  const isInPass = plan.nodes[node]!.loops.every((loop, at) => {
    const { i = passes[at] } = recordOf(execution, loop);
    return plan.nodes[loop]!.type !== 'saga' || i === passes[at];
  });
  let begun = 0;
  for (let at = node; at >= 0; at = plan.nodes[at]!.parent) {
    begun += execution.v?.[plan.nodes[at]!.first] ?? 0;
  }
  return isInPass && runs === begun;
}

/** One that is at work ends. */
function end(player: Player, choice: number, completed: Dispatch[]): void {
  const open = [...player.open.values()];
  const one = open[Math.floor(choice / 10) % open.length]!;
  if (choice % 10 < 3) player.fail(one.blockId);
  else {
    completed.push(open.find(({ blockId }) => blockId === one.blockId)!);
    player.complete(one.blockId, { go: choice % 2 === 0 });
  }
}

/** All that is open ends, as the choices say; then well. */
function live(player: Player, choices: readonly number[], completed: Dispatch[]): void {
  const left = [...choices];
  for (let i = 0; i < 2_000 && !isEnded(player.snapshot.state); i += 1) {
    if (player.open.size === 0) player.tick();
    else end(player, left.shift() ?? 9, completed);
  }
}

const kinds = { saga: 8, try_catch: 6, parallel: 3, for_each: 3, loop: 3, race: 2, router: 2 };
const lives = fc.record({
  tree: trees(kinds),
  data: contexts,
  first: fc.array(fc.nat(999), { maxLength: 12 }),
  cut: fc.constantFrom('none', 'none', 'stop', 'cancel'),
  further: fc.array(fc.array(fc.nat(999), { maxLength: 8 }), { minLength: 1, maxLength: 3 }),
});

test('what a retry runs once more was named, and what repeats effects asks', (t) => {
  let asked = 0;
  let retried = 0;
  check(t, byDepth(1_500, 6_000), lives, ({ tree, data, first, cut, further }) => {
    const player = play(tree.blocks, { data: structuredClone(data) });
    const completed: Dispatch[] = [];
    if (cut !== 'none') {
      for (const choice of first) if (player.open.size > 0) end(player, choice, completed);
      if (!isEnded(player.snapshot.state)) {
        player.send(cut === 'stop' ? { kind: 'stop', state: 'failed' } : { kind: 'cancel' });
      }
    }
    live(player, first, completed);
    for (const choices of [...further, []]) {
      if (player.state !== 'failed') return;
      const again = preview(player);
      const { plan, dispatched } = player;
      const named = new Set(
        again.blocks.flatMap(({ block_id }) => {
          const { index, end } = plan.nodes[plan.indexOf.get(block_id)!]!;
          return plan.nodes.slice(index, end).map(({ id }) => id);
        }),
      );
      const keys = (some: readonly Dispatch[]) =>
        new Set(some.filter((one) => isPresent(player, one)).map((one) => keyOf(player, one)));
      const [begun, over] = [keys(dispatched), keys(completed)];
      const from = dispatched.length;
      retried += 1;
      if (again.repeats_effects) asked += 1;
      player.after('retry', 'wake');
      live(player, choices, completed);
      for (const one of dispatched.slice(from)) {
        const key = keyOf(player, one);
        if (begun.has(key)) assert.ok(named.has(one.blockId), `${key} runs again, unnamed`);
        if (over.has(key)) assert.ok(again.repeats_effects, `${key} had completed, unasked`);
      }
      // It may fail once more.
      if (again.ends !== undefined) assert.ok(['failed', again.ends].includes(player.state));
    }
  });
  t.diagnostic(`${retried} retries, ${asked} of them asked`);
  assert.ok(asked * 50 > retried && asked * 2 < retried, `${asked} of ${retried}`);
});
