/** The built-in handlers: parameters, output, failures, and an example of each. */

import { BUILTIN_HANDLERS, type BuiltinName, HANDLER_PARAMS } from '../../schema/handlers.js';
import { code, table } from './markdown.js';
import type { Regions } from './regions.js';
import { memberTable } from './schema-tables.js';
import { exampleText, HANDLER_EXAMPLES } from './sequence-examples.js';

interface HandlerText {
  readonly does: string;
  readonly output: string;
  readonly fails: string;
  /** Said instead of a table when there are no parameters by name. */
  readonly params?: string;
}

const HANDLERS: { readonly [Name in BuiltinName]: HandlerText } = {
  noop: {
    does: 'does nothing',
    output: '`{}`',
    fails: 'never',
    params: 'It takes no parameters.',
  },
  log: {
    does: 'writes a line to the log of the server',
    output: '`{message}`, the value as it was given',
    fails: 'never',
  },
  sleep: {
    does: 'waits',
    output: '`{slept_ms}`, the requested duration',
    fails: 'permanently, if the duration is invalid',
  },
  wait_for_event: {
    does: 'waits for an event, or for a signal of its own instance',
    output: 'the payload',
    fails: 'retryably with the code `timeout`, after its time limit',
  },
  http_request: {
    does: 'sends one HTTP request',
    output: '`{status, headers, body, json, body_problem}`',
    fails: 'see [below](#http_request)',
  },
  fail: {
    does: 'fails',
    output: 'none',
    fails: 'always; permanently unless `retryable` is true',
  },
  transform: {
    does: 'returns its rendered parameters',
    output: 'its parameters',
    fails: 'never',
    params: 'Its parameters are any object.',
  },
  assert: {
    does: 'fails unless a condition holds',
    output: '`{condition, passed: true}`',
    fails: 'permanently, if the condition is false',
  },
};

export function handlerRegions(): Regions {
  const rows = BUILTIN_HANDLERS.map((name) => {
    const { does, output, fails } = HANDLERS[name];
    return [`[${code(name)}](#${name})`, does, output, fails];
  });
  return {
    handlers: table(['handler', 'what it does', 'output', 'when it fails'], rows),
    ...Object.fromEntries(BUILTIN_HANDLERS.flatMap(regionsOf)),
  };
}

function regionsOf(name: BuiltinName): [region: string, text: string][] {
  return [
    [`${name}-parameters`, parametersText(name)],
    [`${name}-example`, exampleText(`example-${name}`, HANDLER_EXAMPLES[name])],
  ];
}

/** @throws Error when nothing can be said */
function parametersText(name: BuiltinName): string {
  const schema = HANDLER_PARAMS[name];
  const { params } = HANDLERS[name];
  const hasMembers = Object.keys(schema.properties).length > 0;
  if (hasMembers === (params !== undefined))
    throw new Error(`the parameters of ${name} are not described`);
  return params ?? memberTable({ schema, head: 'parameter' });
}
