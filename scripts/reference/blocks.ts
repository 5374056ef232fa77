/** Tables of the members of blocks and of the options of steps, and an example of each kind. */

import { type TObject, Type } from '@sinclair/typebox';
import { KIND_NAMES, type KindName, membersOf } from '../../schema/blocks.js';
import { PARAMS_NOTE } from '../../schema/handlers.js';
import { Delay, Retry, SendWindow, WaitForInput } from '../../schema/step-options.js';
import type { Regions } from './regions.js';
import { memberTable } from './schema-tables.js';
import { exampleText, GATE_EXAMPLE, KIND_EXAMPLES, STEP_EXAMPLES } from './sequence-examples.js';

/** Members of every kind; the page of steps repeats them, since a step has a `timeout` of its own. */
export const SHARED_MEMBERS = ['type', 'id', 'when', 'timeout'] as const;

/** Steps have a page of their own, with a section for each of these but the parameters. */
const STEP_LINKS = {
  params: '[handlers](handlers.md)',
  retry: '[retry](#retries)',
  delay: '[delay](#delay)',
  send_window: '[send_window](#send_window)',
  wait_for_input: '[approvals](approvals.md)',
  ...Object.fromEntries(
    ['timeout', 'queue_timeout', 'deadline', 'on_deadline_breach'].map((name) => [
      name,
      '[time limits](#time-limits)',
    ]),
  ),
};

const SHARED = Type.Object({
  ...Type.Pick(Type.Object(membersOf('loop')), SHARED_MEMBERS).properties,
  type: Type.String({ description: 'Kind of the block.' }),
});

export function blockRegions(): Regions {
  const kinds = KIND_NAMES.filter((kind) => kind !== 'step');
  return {
    'every-kind': memberTable({ schema: SHARED }),
    ...Object.fromEntries(kinds.flatMap(regionsOf)),
  };
}

export function stepRegions(): Regions {
  return {
    ...Object.fromEntries(regionsOf('step')),
    retry: memberTable({ schema: Retry, head: 'member of `retry`' }),
    delay: memberTable({ schema: Delay, head: 'member of `delay`' }),
    ...Object.fromEntries(
      Object.entries(STEP_EXAMPLES).map(([name, example]) => [
        `${name}-example`,
        exampleText(`example-${name}`, example),
      ]),
    ),
    send_window: memberTable({ schema: SendWindow, head: 'member of `send_window`' }),
  };
}

export function approvalRegions(): Regions {
  return {
    wait_for_input: memberTable({ schema: WaitForInput, head: 'member of `wait_for_input`' }),
    'gate-example': exampleText('example-approval', GATE_EXAMPLE),
  };
}

function regionsOf(kind: KindName): [name: string, text: string][] {
  const links = kind === 'step' ? STEP_LINKS : {};
  return [
    [`${kind}-members`, memberTable({ schema: schemaOf(kind), links })],
    [`${kind}-example`, exampleText(`example-${kind}`, KIND_EXAMPLES[kind])],
  ];
}

function schemaOf(kind: KindName): TObject {
  const { params, ...members } = membersOf(kind);
  if (params === undefined) return Type.Omit(Type.Object(members), SHARED_MEMBERS);
  // The page of the handlers has what the OpenAPI document can only list.
  const description = params.description?.replace(` ${PARAMS_NOTE}`, '') ?? '';
  return Type.Object({ ...membersOf(kind), params: { ...params, description } });
}
