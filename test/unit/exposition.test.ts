/** The reader of metrics that the tests rely on refuses what a scraper would misread. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseExposition } from '../helpers/exposition.js';

const HISTOGRAM = [
  '# HELP h How long.',
  '# TYPE h histogram',
  'h_bucket{le="0.5"} 1',
  'h_bucket{le="+Inf"} 3',
  'h_sum 2.5',
  'h_count 3',
  '',
].join('\n');

test('families, labels and values are read', () => {
  const text = `# HELP c Things.\n# TYPE c counter\nc{a="x\\"\\\\\\n",b=""} 1e3\nc 2\n\n${HISTOGRAM}`;
  const { families, value } = parseExposition(text);
  assert.deepEqual([...families.keys()], ['c', 'h']);
  assert.deepEqual(families.get('c')?.samples[0], {
    name: 'c',
    labels: { a: 'x"\\\n', b: '' },
    value: 1_000,
  });
  assert.deepEqual([value('c'), value('h_count')], [2, 3]);
  assert.throws(() => value('d'), /no sample d/);
});

const HEAD = '# HELP c Things.\n# TYPE c counter\n';
const WRONG: Readonly<Record<string, string>> = {
  'a last line without an end': `${HEAD}c 1`,
  'a sample without a type': '# HELP c Things.\nc 1\n',
  'a family without help': '# TYPE c counter\nc 1\n',
  'a family without samples': HEAD,
  'a sample of another family': `${HEAD}d 1\n`,
  'a sample twice': `${HEAD}c 1\nc 2\n`,
  'a type twice': `${HEAD}# TYPE c counter\nc 1\n`,
  'a family in two pieces': `${HEAD}c 1\n# HELP d D.\n# TYPE d gauge\nd 1\n# HELP c Things.\n`,
  'a counter below 0': `${HEAD}c -1\n`,
  'a value that is no number': `${HEAD}c one\n`,
  'a label without quotes': `${HEAD}c{a=b} 1\n`,
  'a label twice': `${HEAD}c{a="1",a="2"} 1\n`,
  'a line that is no sample': `${HEAD}c\n`,
  'buckets that go down': HISTOGRAM.replace('le="0.5"} 1', 'le="0.5"} 4'),
  'no bucket without a bound': HISTOGRAM.replace(/h_bucket\{le="\+Inf"\} 3\n/, ''),
  'bounds out of order': HISTOGRAM.replace('h_bucket{le="0.5"} 1', 'h_bucket{le="x"} 1'),
  'a count that is not that of the buckets': HISTOGRAM.replace('h_count 3', 'h_count 4'),
  'no sum': HISTOGRAM.replace('h_sum 2.5\n', ''),
};

for (const [what, text] of Object.entries(WRONG)) {
  test(`${what} is refused`, () => {
    assert.throws(() => parseExposition(text), Error);
  });
}
