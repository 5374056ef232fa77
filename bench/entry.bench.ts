/** What a shard does with every body before an actor sees it: guard, parse, validate. */

import { createValidators } from '../schema/validators.js';
import { parseJson } from '../src/base/json-guard.js';
import { createBody } from './fixtures.js';
import type { MicroCase } from './micro.js';

const BODY = createBody('01932f2e-0000-7000-8000-000000000001');
const TEXT = JSON.stringify(BODY);
/** Forces the scan, which ordinary texts are spared: an escape that might be a surrogate. */
const ESCAPED_TEXT = TEXT.replace('Zoë', 'Zo\\u00eb');
const LARGE_TEXT = JSON.stringify({ ...BODY, metadata: { rows: Array(100).fill(BODY.context) } });

const validators = createValidators();

export const entryCases: readonly MicroCase[] = [
  {
    name: `JSON.parse alone: creation, ${TEXT.length} characters`,
    calls: 5,
    run: () => JSON.parse(TEXT),
  },
  { name: 'json-guard: the same creation', calls: 5, run: () => parseJson(TEXT) },
  { name: 'json-guard: with an escape', calls: 2, run: () => parseJson(ESCAPED_TEXT) },
  { name: `json-guard: ${LARGE_TEXT.length} characters`, run: () => parseJson(LARGE_TEXT) },
  {
    name: 'validation: body of a creation',
    calls: 20,
    run: () => validators.validateBody('instances.create', BODY),
  },
];
