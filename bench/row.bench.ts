/** Ids, and an instance's row and wire record as text: once per commit unit and per read. */

import { wholeLine, wireInstance } from '../actors/instance/record.js';
import { keyedInstanceId } from '../src/base/ids.js';
import { benchIds, orderRecord } from './fixtures.js';
import type { MicroCase } from './micro.js';

const ids = benchIds();
const RECORD = orderRecord(ids.next(0));

export const rowCases: readonly MicroCase[] = [
  { name: 'id: UUIDv7', calls: 50, run: () => ids.next(4_711) },
  { name: 'id: from an idempotency key', calls: 5, run: () => keyedInstanceId('bench', 'order-1') },
  { name: 'row: new instance as text', calls: 5, run: () => wholeLine(RECORD) },
  { name: 'row: wire record as text', calls: 5, run: () => JSON.stringify(wireInstance(RECORD)) },
];
