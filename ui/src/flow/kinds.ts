/**
 * The kinds of blocks as the dashboard shows them: name, structure and details (docs/adding-blocks.md). The icons are in
 * `look-icon.tsx`. Pure.
 */

import type { Block, StepBlock } from 'durable-workflow-engine-client';
import { formatDuration } from '../lib/format.ts';

/**
 * How the slots of a block are arranged.
 * - `body`: one list, without a name.
 * - `fork`: side by side; one or all of them run.
 * - `rows`: rows of slots, run one after the other.
 */
export type Arrangement = 'body' | 'fork' | 'rows';

/** A list of blocks inside a block. */
export interface Slot<B = Block> {
  /** Stable when other slots are inserted before it. */
  readonly key: string;
  readonly label: string;
  /** The row of `rows` it is in. */
  readonly row: number;
  /** Runs only after a failure. */
  readonly isFallback: boolean;
  readonly blocks: readonly B[];
}

export interface Parts {
  /** A handler, condition or sequence, in a few words. */
  readonly detail: string;
  readonly slots?: readonly Slot[];
}

interface Kind<B extends Block> {
  readonly name: string;
  readonly arrangement?: Arrangement;
  /** The blocks inside run once per iteration. */
  readonly isRepeating?: boolean;
  parts(block: B): Parts;
}

type KindName = Exclude<Block['type'], 'a_b_split'>;
type BlockOf<T, B = Block> = B extends { type: infer Types }
  ? T extends Types
    ? B
    : never
  : never;

const KINDS: { readonly [T in KindName]: Kind<BlockOf<T>> } = {
  step: { name: 'step', parts: (block) => ({ detail: stepDetail(block) }) },
  sub_sequence: {
    name: 'sub-sequence',
    parts: ({ sequence_name, version }) => ({
      detail: `${sequence_name}${version == null ? '' : ` v${version}`}`,
    }),
  },
  parallel: {
    name: 'parallel',
    arrangement: 'fork',
    parts: ({ branches }) => ({ detail: 'runs all branches', slots: branchSlots(branches) }),
  },
  race: {
    name: 'race',
    arrangement: 'fork',
    parts: ({ semantics, branches }) => ({
      detail: `the first branch to ${semantics === 'first_to_succeed' ? 'succeed' : 'finish'} wins`,
      slots: branchSlots(branches),
    }),
  },
  router: {
    name: 'router',
    arrangement: 'fork',
    parts: ({ routes, default: otherwise }) => ({
      detail: 'runs the first matching route',
      slots: [
        ...(routes ?? []).map(({ condition, blocks }, i, all) => ({
          ...slot(condition, blocks),
          // Two routes may have the same condition, and then the later one is never taken.
          key: `${all.findIndex((route) => route.condition === condition) === i ? '' : i}if ${condition}`,
        })),
        ...(otherwise == null ? [] : [slot('else', otherwise)]),
      ],
    }),
  },
  ab_split: {
    name: 'A/B split',
    arrangement: 'fork',
    parts: ({ variants }) => {
      const sum = variants.reduce((all, { weight }) => all + weight, 0);
      return {
        detail: 'picks one variant by weight',
        slots: variants.map(({ name, weight, blocks }) => ({
          ...slot(`${name} · ${percent(weight, sum)}`, blocks),
          key: name,
        })),
      };
    },
  },
  try_catch: {
    name: 'try and catch',
    arrangement: 'rows',
    parts: ({ try_block, catch_block, finally_block }) => ({
      detail: 'catch runs only if try fails',
      slots: [
        slot('try', try_block),
        { ...slot('catch', catch_block), isFallback: true },
        ...(finally_block == null ? [] : [{ ...slot('finally', finally_block), row: 1 }]),
      ],
    }),
  },
  saga: {
    name: 'saga',
    arrangement: 'rows',
    parts: ({ steps }) => ({
      detail: 'compensates completed steps on failure',
      slots: steps.flatMap(({ id, action, compensation }, row) => [
        { ...slot(id, asList(action)), row },
        ...(compensation == null
          ? []
          : [{ ...slot(`undo ${id}`, asList(compensation)), row, isFallback: true }]),
      ]),
    }),
  },
  loop: {
    name: 'loop',
    isRepeating: true,
    parts: ({ condition, body }) => ({ detail: `while ${condition}`, slots: [slot('body', body)] }),
  },
  for_each: {
    name: 'for each',
    isRepeating: true,
    parts: ({ item_var, collection, body }) => ({
      detail: `${item_var ?? 'item'} of ${collection}`,
      slots: [slot('body', body)],
    }),
  },
  cancellation_scope: {
    name: 'cancellation scope',
    parts: ({ blocks }) => ({
      detail: 'protected from cancellation',
      slots: [slot('body', blocks)],
    }),
  },
};

/** Steps that wait for a person, a timer or an event, and what is no block of a definition. */
const OTHER_LOOKS = {
  http_request: 'HTTP request',
  approval: 'approval',
  sleep: 'sleep',
  wait_for_event: 'wait for an event',
  hooks: 'hooks',
  unknown: 'block',
} as const;

/** How a block is drawn. */
export type Look = KindName | keyof typeof OTHER_LOOKS;

export const LOOKS = [...Object.keys(KINDS), ...Object.keys(OTHER_LOOKS)] as readonly Look[];

export function lookName(look: Look): string {
  return isKind(look) ? KINDS[look].name : OTHER_LOOKS[look];
}

/** By the name of a kind. A newer server may have kinds that this page does not know. */
export function lookNamed(type: string): Look {
  const name = type === 'a_b_split' ? 'ab_split' : type;
  return isKind(name) ? name : 'unknown';
}

export function lookOf(block: Block): Look {
  if (block.type !== 'step') return lookNamed(block.type);
  if (block.wait_for_input != null) return 'approval';
  const own = ['http_request', 'sleep', 'wait_for_event'] as const;
  return own.find((handler) => handler === block.handler) ?? 'step';
}

export function arrangementOf(look: Look): Arrangement {
  return (isKind(look) ? KINDS[look].arrangement : undefined) ?? 'body';
}

export function isRepeating(look: Look): boolean {
  return isKind(look) && KINDS[look].isRepeating === true;
}

export function partsOf(block: Block): Parts {
  const name = lookNamed(block.type);
  if (!isKind(name)) return { detail: block.type };
  return (KINDS[name] as Kind<Block>).parts(block);
}

function isKind(name: string): name is KindName {
  return Object.hasOwn(KINDS, name);
}

/** The request, event or duration says more than the name of the handler. */
function stepDetail({ handler, params, wait_for_input }: StepBlock): string {
  if (wait_for_input != null) return wait_for_input.prompt || handler;
  const { method = 'GET', url, name, duration_ms } = (params ?? {}) as Record<string, unknown>;
  if (handler === 'http_request' && typeof url === 'string') return `${method} ${url}`;
  if (handler === 'wait_for_event' && typeof name === 'string') return name;
  if (handler === 'sleep' && typeof duration_ms === 'number') return formatDuration(duration_ms);
  return handler;
}

function branchSlots(branches: readonly (readonly Block[])[]): readonly Slot[] {
  return branches.map((blocks, i) => slot(`branch ${i + 1}`, blocks));
}

function slot(label: string, blocks: readonly Block[]): Slot {
  return { key: label, label, row: 0, isFallback: false, blocks };
}

function asList(blocks: Block | readonly Block[]): readonly Block[] {
  return Array.isArray(blocks) ? blocks : [blocks as Block];
}

function percent(weight: number, sum: number): string {
  return sum === 0 ? '0 %' : `${Math.round((weight / sum) * 1_000) / 10} %`;
}
