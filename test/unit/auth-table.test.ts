/** The table of routes in docs/authorization.md is the one that the rows of the routes make. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { CAPABILITIES } from '../../schema/route-row.js';
import { ROUTES, type Route } from '../../schema/routes.js';

const DOCUMENT = 'docs/authorization.md';

const TENANT = { required: 'required', optional: 'in the request', none: 'none' } as const;

function rowOf(route: Route): string {
  const { capability, tenant, method, path } = route;
  const marks = CAPABILITIES.map((word) =>
    capability !== 'public' && capability.includes(word) ? '✓' : '',
  );
  const asks = capability === 'public' ? 'no key' : capability.length === 0 ? 'root key' : 'key';
  return `| \`${method} ${path}\` | ${asks} | ${marks.join(' | ')} | ${TENANT[tenant]} |`;
}

function table(): string {
  const head = ['route', 'asks for', ...CAPABILITIES, 'tenant'];
  return [
    `| ${head.join(' | ')} |`,
    `|${'---|'.repeat(head.length)}`,
    ...Object.values(ROUTES).map(rowOf),
  ].join('\n');
}

test(`the table in ${DOCUMENT} says of every route what it asks for`, () => {
  const text = readFileSync(DOCUMENT, 'utf8');
  const [, written] = /<!-- routes -->\n([\s\S]*?)\n*<!-- \/routes -->/.exec(text) ?? [];
  assert.equal(written, table(), `the table in ${DOCUMENT} should be:\n\n${table()}\n`);
});
