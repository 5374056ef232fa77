/** Whatever is written in code is a definition that the server stores without a warning. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Blocks, Ref, Scope, Sequence, Untyped } from '../../client/src/index.js';
import { filter, fn, sequence, t } from '../../client/src/index.js';
import { BLOCK_TYPES, kindName } from '../../schema/blocks.js';
import { createValidators } from '../../schema/validators.js';
import type { JsonValue } from '../../src/base/json.js';
import { compilePlan } from '../../src/core/plan.js';
import { judgeDefinition } from '../../src/http/definition.js';
import { byDepth } from '../helpers/depth.js';
import { check } from '../helpers/properties.js';

const validators = createValidators();

interface Input {
  readonly name: string;
  readonly total: number;
  readonly note?: string;
  readonly tags: readonly string[];
}

type List = Blocks<Untyped, Input, Untyped, Untyped>;
type Place = Scope<Input, Record<string, Untyped>, Untyped>;

const log = (message: (place: Place) => Untyped) => ({
  handler: 'log',
  params: (place: Place) => ({ message: message(place) }),
});

/** Writes sequences by chance: the same for the same seed. */
class Author {
  #state: number;
  #ids = 0;
  #left: number;

  constructor(seed: number, size: number) {
    this.#state = seed;
    this.#left = size;
  }

  /** A whole number below `bound`. */
  next(bound: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * bound);
  }

  pick<T>(...from: readonly T[]): T {
    return from[this.next(from.length)] as T;
  }

  #id(): string {
    this.#ids += 1;
    return this.pick(`block_${this.#ids}`, `Block-${this.#ids}`, `b${this.#ids}`);
  }

  #text(): string {
    return this.pick('', 'plain', `it's "so"`, 'a && b', 'True', 'data.name', '== 1', '{', '… ? :');
  }

  /** @param before the ids of steps that may have run */
  condition(place: Place, before: readonly string[]): Untyped {
    const { input } = place;
    const id = this.pick(...before.filter((name) => !name.includes('-')), '');
    const output = id === '' ? input.note : (place.outputs[id] as Ref<Untyped>).value;
    return this.pick(
      () => input.total.gt(this.next(100)).and(input.name.ne(this.#text())),
      () => output.eq(this.#text()),
      () => output.eq(input.total.plus(1)).or(input.note),
      () => fn.len(input.tags).ge(2).not(),
      () => fn.choose(input.note, 'a', 'b').eq('a'),
      () => input.name.in(['a', this.#text()]).and(fn.contains(input.tags, this.#text())),
      () => place.instanceId.eq(input.name),
    )();
  }

  params(place: Place, before: readonly string[]): Untyped {
    const { input } = place;
    const id = this.pick(...before, '');
    const output = id === '' ? input.note : (place.outputs[id] as Ref<Untyped>).value;
    return {
      one: output,
      text: t`for ${input.name}, ${filter.upper(input.name)}: ${this.next(9)}`,
      nested: [{ or: input.note.orElse('none'), json: filter.json(input.tags) }, this.#text(), 1],
      [this.#text()]: filter.default(input.note, this.pick<string | number>('x', 3)),
    };
  }

  #when(before: readonly string[]): Untyped {
    const when = (place: Place) => this.condition(place, before);
    return this.next(4) === 0 ? { when } : {};
  }

  #step(list: Untyped, before: string[]): Untyped {
    const id = this.#id();
    const known = [...before];
    const params = (place: Place) => this.params(place, known);
    const noop = { handler: 'noop', ...this.#when(known) };
    const retry = {
      max_attempts: 3,
      retry_if: ({ error }: Untyped) => error.message.ne(this.#text()),
    };
    const worker = {
      ...{ handler: 'charge', params, queue_name: 'q', queue_timeout: 1_000, retry },
      ...{ output_schema: { type: 'object' }, ...this.#when(known) },
      rate_limit_key: this.pick<Untyped>('bank', ({ input }: Place) => t`bank:${input.name}`),
    };
    const late = log(({ input }) => t`late: ${input.name}`);
    const window = { start_hour: 8, end_hour: 20, days: [0, 1] };
    const gate = {
      prompt: ({ input }: Place) => t`Pay ${input.total}?`,
      ...{ choices: [{ label: 'Yes', value: 'yes' }], timeout: 5, escalation_handler: 'boss' },
    };
    const condition = (place: Place) => ({ condition: this.condition(place, known) });
    const made = this.pick(
      () => list.step(id, worker),
      () => list.transform(id, params, this.#when(known)),
      () => list.step(id, { ...noop, delay: { duration: 5, jitter: 1 }, timeout: 5 }),
      () => list.step(id, { ...log(params), deadline: 1_000, on_deadline_breach: late }),
      () => list.step(id, { ...log(params), send_window: window }),
      () => list.step(id, { handler: 'assert', params: condition }),
      () => list.step(id, { ...noop, cancellable: false, wait_for_input: gate }),
      () => list.waitForEvent(id, { name: 'paid', key: ({ input }: Place) => input.name }),
      () => list.subSequence(id, 'child', { input: ({ input }: Place) => ({ who: input.name }) }),
    )();
    before.push(id);
    return made;
  }

  /** A list of one block at least; those of its ids that may have run come to `before`. */
  blocks(list: List, before: string[], depth = 0): Untyped {
    let made: Untyped = list;
    const count = 1 + this.next(4);
    for (let at = 0; at < count; at += 1) {
      this.#left -= 1;
      const isStep = this.#left <= 0 || depth > 3 || this.next(2) === 0;
      made = isStep ? this.#step(made, before) : this.#composite(made, before, depth + 1);
    }
    return made;
  }

  /** @param own the ids that it sees; what it adds is seen by who is given them, too */
  #branch(own: string[], depth: number) {
    return (b: List) => this.blocks(b, own, depth);
  }

  #composite(list: Untyped, before: string[], depth: number): Untyped {
    const id = this.#id();
    const head = { ...this.#when([...before]), ...(this.next(3) === 0 ? { timeout: 60_000 } : {}) };
    const branches = Array.from({ length: 2 + this.next(2) }, () => [...before]);
    const inside = branches.map((own) => this.#branch(own, depth));
    const [first = [], second = []] = branches;
    const condition = (place: Place) => this.condition(place, before);
    const made = this.pick(
      () => list.parallel(id, inside, head),
      () => list.race(id, inside, { ...head, semantics: 'first_to_succeed' }),
      () =>
        list.router(
          id,
          inside.map((blocks) => ({ condition, blocks })),
          { ...head, default: (b: List) => b },
        ),
      () =>
        list.tryCatch(id, inside[0], {
          ...head,
          catch: (b: List, error: Untyped) =>
            this.blocks(b, second, depth).step(
              this.#id(),
              log(() => t`${error.code}: ${error.message}`),
            ),
          finally: this.#branch([...before], depth),
        }),
      () =>
        list.loop(id, inside[0], {
          ...head,
          condition: (place: Place) => this.condition(place, first),
          max_iterations: 3,
        }),
      () =>
        list.forEach(
          id,
          ({ input }: Place) => input.tags,
          (b: List, item: Untyped, index: Untyped) =>
            this.blocks(b, first, depth).step(
              this.#id(),
              log(() => t`${index}: ${item}`),
            ),
          { ...head, concurrency: 2 },
        ),
      () => list.cancellationScope(id, inside[0], head),
      () =>
        list.saga(
          id,
          (saga: Untyped) =>
            saga
              .step(this.#id(), inside[0], inside[1])
              .step(this.#id(), inside[2] ?? ((b: List) => this.#step(b, []))),
          head,
        ),
      () =>
        list.abSplit(
          id,
          inside.map((blocks, at) => ({ name: `v${at}`, weight: 1, blocks })),
          head,
        ),
    )();
    before.push(...new Set(branches.flat().filter((name) => !before.includes(name))));
    return made;
  }
}

function written(seed: number, size: number): Sequence<Untyped, Input, Untyped, Untyped> {
  const author = new Author(seed, size);
  const made: Sequence<Untyped, Input, Untyped, Untyped> = author.blocks(
    sequence<Untyped, Input>('generated', { namespace: 'test' }) as Untyped,
    [],
  );
  return made.onFailure((h, error) =>
    h.step('alarm', { handler: 'log', params: { message: error.message } }),
  );
}

test('a sequence collects creations, and steps of a batch see the list of their inputs', () => {
  const debounce = sequence<Untyped, { readonly order: string }>('s').debounce({
    key: ({ input }) => input.order,
    wait_ms: 1,
  });
  assert.deepEqual(debounce.definition.debounce, { key: '{{ data.order }}', wait_ms: 1 });
  const batch = { size: 2, wait_ms: 1 };
  const made = sequence<Untyped, { readonly to: string }>('s')
    .batch(batch)
    .transform('first', ({ input }) => ({ to: input.items.at(0).to }));
  assert.deepEqual(made.definition.batch, batch);
  // A creation and a child give one item.
  const item: NonNullable<typeof made.inputs> = { to: 'a' };
  assert.deepEqual(item, { to: 'a' });
});

test('the members by which instances are found add up', () => {
  const made = sequence('s').searchable('order', 'customer.email').searchable('parcel');
  assert.deepEqual(made.definition.searchable, ['order', 'customer.email', 'parcel']);
});

test('any definition in code is stored without a warning, whatever kinds and options it has', (run) => {
  const kinds = new Set<string>();
  const cases = fc.tuple(fc.nat({ max: 2 ** 31 - 1 }), fc.integer({ min: 1, max: 30 }));
  check(run, byDepth(500, 10_000), cases, ([seed, size]) => {
    const { definition } = written(seed, size);
    const body = { ...JSON.parse(JSON.stringify(definition)), tenant_id: 't' } as JsonValue;
    const checked = validators.validateBody('sequences.create', body);
    assert.ok(checked.ok, checked.ok ? '' : checked.message);
    const { errors, warnings: told } = judgeDefinition('sequences.create', checked.value);
    // What sagas take back is up to whoever writes them.
    const warnings = told.filter(({ message }) => !message.includes('is not compensated'));
    assert.deepEqual({ errors, warnings }, { errors: [], warnings: [] });
    const { blocks } = checked.value;
    const compiled = compilePlan({ id: 's', blocks }, () => () => undefined);
    assert.ok(compiled.ok, compiled.ok ? '' : compiled.message);
    for (const [kind] of JSON.stringify(blocks).matchAll(/(?<="type":")\w+(?=","id)/g)) {
      kinds.add(kind);
    }
  });
  const seen = [...kinds].toSorted();
  assert.deepEqual(seen, [...new Set(BLOCK_TYPES.map((type) => kindName({ type })))].toSorted());
});

test('an action that can be taken back ends before a cancel, where it is one step of somebody outside', () => {
  type Make = (list: Untyped) => Untyped;
  const step = (handler: string, more: object = {}) => ({ handler, params: { url: 'u' }, ...more });
  const undo: Make = (c) => c.step('undo', { handler: 'noop' });
  const charge: Make = (a) => a.step('a', step('charge'));
  const cases: readonly (readonly [
    expected: (boolean | undefined)[],
    action: Make,
    undo?: Make,
  ])[] = [
    [[false], charge, undo],
    [[false], (a) => a.step('a', step('http_request')), undo],
    [[true], (a) => a.step('a', step('charge', { cancellable: true })), undo],
    [[undefined], charge],
    [[undefined], (a) => a.step('a', step('noop')), undo],
    [[undefined, undefined], (a) => charge(a).step('b', step('ship')), undo],
  ];
  for (const [expected, action, compensation] of cases) {
    const { blocks }: Untyped = sequence<Untyped, Input>('s').saga('saga', (s: Untyped) =>
      s.step('one', action, compensation),
    );
    const made = blocks[0].steps[0].action.map((block: Untyped) => block.cancellable);
    assert.deepEqual(made, expected);
  }
});
