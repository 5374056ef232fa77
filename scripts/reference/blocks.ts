/** The members of each kind of block, of what stands in a step, and an example of each kind. */

import { Type } from '@sinclair/typebox';
import {
  BLOCK_TYPES,
  type Block,
  Delay,
  membersOf,
  Retry,
  SendWindow,
} from '../../schema/blocks.js';
import type { Regions } from './regions.js';
import { memberTable } from './schema-tables.js';
import { exampleText, KIND_EXAMPLES } from './sequence-examples.js';

/** Steps have a page of their own, with a section for each of these. */
const STEP_LINKS = {
  retry: '[retry](#retries)',
  delay: '[delay](#delay)',
  send_window: '[send_window](#send_window)',
};

export function blockRegions(): Regions {
  const kinds = BLOCK_TYPES.filter((kind) => kind !== 'step');
  return Object.fromEntries(kinds.flatMap(regionsOf));
}

export function stepRegions(): Regions {
  return {
    ...Object.fromEntries(regionsOf('step')),
    retry: memberTable({ schema: Retry, head: 'member of `retry`' }),
    delay: memberTable({ schema: Delay, head: 'member of `delay`' }),
    send_window: memberTable({ schema: SendWindow, head: 'member of `send_window`' }),
  };
}

function regionsOf(kind: Block['type']): [name: string, text: string][] {
  const links = kind === 'step' ? STEP_LINKS : {};
  return [
    [`${kind}-members`, memberTable({ schema: schemaOf(kind), links })],
    [`${kind}-example`, exampleText(`example-${kind}`, KIND_EXAMPLES[kind])],
  ];
}

const schemaOf = (kind: Block['type']) => Type.Object(membersOf(kind));
