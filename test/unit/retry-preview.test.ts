/** What is said before a retry about what it runs once more, held against what the evaluator does then. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Block } from '../../schema/blocks.js';
import type { Dispatch } from '../../src/core/evaluator.js';
import { recordOf } from '../../src/core/paths.js';
import { runsAgain } from '../../src/core/retry-preview.js';
import { retryText } from '../../src/core/retry-words.js';
import { isEnded } from '../../src/core/states.js';
import { contexts, trees } from '../helpers/block-trees.js';
import { byDepth } from '../helpers/depth.js';
import { forEach, loop, type Player, play, tryCatch, work } from '../helpers/player.js';
import { check } from '../helpers/properties.js';

const saga = (id: string, ...steps: [string, Block | Block[], Block?][]): Block => ({
  type: 'saga',
  id,
  steps: steps.map(([name, action, compensation]) =>
    compensation === undefined ? { id: name, action } : { id: name, action, compensation },
  ),
});

const preview = ({ plan, snapshot }: Player) => runsAgain(plan, snapshot);

/** `kind path` of each block, with what repeats behind it, what stays, and how it ends. */
function told(player: Player): string {
  const { blocks, stays, repeats_effects, ends } = preview(player);
  const again = blocks.map(
    ({ kind, path, repeats }) => `${kind} ${path}${repeats.length > 0 ? ` (${repeats})` : ''}`,
  );
  const asks = repeats_effects ? '; asks' : '';
  return `${again.join(', ')}; stays ${stays.join(', ')}${ends === undefined ? '' : `; ${ends}`}${asks}`;
}

describe('before a retry it is said', () => {
  const trip = saga('s', ['pay', work('charge'), work('refund')], ['send', work('ship')]);
  const order = tryCatch('t', [work('charge')], [work('a'), work('b')], [work('notify')]);
  const items = forEach('f', 'xs', [work('pay'), work('mail')], { concurrency: 2 });
  const child: Block = { type: 'sub_sequence', id: 'c', sequence_name: 'parcel' };
  const stop = { kind: 'stop', state: 'failed' } as const;

  const rows: [title: string, Player, says: string][] = [
    [
      'that a step runs again, and what stays',
      play([work('first'), work('second')]).after('ok first', 'fail second'),
      'step second; stays first',
    ],
    [
      'that a saga runs again as a whole when its compensations are done',
      play([work('first'), trip]).after('ok first', 'ok charge', 'fail ship', 'ok refund'),
      'saga s (s[0]/charge); stays first; asks',
    ],
    [
      'that a compensation that failed comes first, and then the end',
      play([trip]).after('ok charge', 'fail ship', 'fail refund'),
      'compensation s[0]/refund; stays s[0]/charge; failed',
    ],
    [
      'that a saga in which nothing had completed repeats nothing',
      play([trip]).after('fail charge'),
      'saga s; stays ',
    ],
    [
      'that a finally list runs once more behind the catch list that failed',
      play([order]).after('fail charge', 'ok a', 'fail b', 'ok notify'),
      'step t/b, finally t/notify (t/notify); stays t/a; asks',
    ],
    [
      'that of a finally list what failed runs, and nothing before it',
      play([order]).after('fail charge', 'ok a', 'ok b', 'fail notify'),
      'finally t/notify; stays t/a, t/b',
    ],
    [
      'with which item and pass it goes on',
      play([loop('l', 'true', 2, [items])], { data: { xs: [1, 2, 3] } }).after(
        'ok pay',
        'fail pay',
        'ok mail',
      ),
      'step l[0]/f[1]/pay; stays ',
    ],
    [
      'that what was cut off by a stop runs again, and what is next after it',
      play([saga('s', ['pay', [work('a'), work('b')]])]).after('ok a', stop),
      'step s[0]/b; stays s[0]/a',
    ],
    [
      'that after a clean-up that failed it ends as it was to end',
      play([tryCatch('t', [work('a')], [], [work('b'), work('c')])]).after(
        'cancel',
        'ok b',
        'fail c',
      ),
      'finally t/c; stays t/b; cancelled',
    ],
    [
      'that a hook of a cancel runs again',
      play([work('a')], {
        hooks: { on_cancel: [{ type: 'step', id: 'h', handler: 'fail' }] },
      }).after('cancel', 'wake'),
      'hook h; stays ; cancelled',
    ],
    ['that a child is retried', withChild({ note: 'then' }), 'child c; stays '],
    ['that another child is started', withChild({}), 'child c (c); stays ; asks'],
  ];
  for (const [title, player, says] of rows) {
    test(title, () => {
      assert.equal(player.state, 'failed');
      assert.equal(told(player), says);
    });
  }

  test('in sentences that name it', () => {
    const [, [, twice]] = rows as unknown as [unknown, [string, Player]];
    assert.equal(
      retryText(preview(twice)),
      'Saga s runs again as a whole: what had completed (s[0]/charge) acts outside a second time. ' +
        'What is repeated has new idempotency keys.',
    );
  });

  function withChild(more: { note?: string }): Player {
    const player = play([child]);
    const { node, iteration, attempt, child: id } = player.children[0]!;
    const step = { node, iteration, attempt };
    player.send({ kind: 'child.made', ...step, child: id! });
    const end = { kind: 'failed', code: 'child_failed', message: 'no', ...more } as const;
    player.send({ kind: 'child.ended', ...step, end });
    return player;
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
