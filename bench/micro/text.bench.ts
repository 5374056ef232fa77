/** What becomes of texts: a body is guarded, parsed and validated, an instance becomes a row and a wire record. */

import { wholeLine } from '../../actors/instance/record.js';
import { wireInstance } from '../../actors/instance/wire-texts.js';
import { createValidators } from '../../schema/validators.js';
import { keyedInstanceId } from '../../src/base/ids.js';
import { parseJson } from '../../src/base/json-guard.js';
import { benchIds, createBody, orderRecord, SEQUENCE_ID } from '../base/fixtures.js';
import type { MicroCase } from './case.js';

const BODY = createBody(SEQUENCE_ID);
const TEXT = JSON.stringify(BODY);
/** Forces the scan, which ordinary texts are spared: an escape that might be a surrogate. */
const ESCAPED_TEXT = TEXT.replace('Zoë', 'Zo\\u00eb');
const LARGE_TEXT = JSON.stringify({ ...BODY, metadata: { rows: Array(100).fill(BODY.context) } });

const validators = createValidators();
const ids = benchIds();
const RECORD = orderRecord(ids.next(0));

export const textCases: readonly MicroCase[] = [
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
  { name: 'id: UUIDv7', calls: 50, run: () => ids.next(4_711) },
  { name: 'id: from an idempotency key', calls: 5, run: () => keyedInstanceId('bench', 'order-1') },
  { name: 'row: new instance as text', calls: 5, run: () => wholeLine(RECORD) },
  { name: 'row: wire record as text', calls: 5, run: () => wireInstance(RECORD) },
];
