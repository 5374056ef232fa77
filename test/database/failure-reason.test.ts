/**
 * The reason of a failure is folded in two places, by the engine and by Postgres, and once was by a migration: failures
 * are put together by the one and looked for by the other, so that all of them have to fold alike.
 */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { foldedSql, foldReason } from '../../actors/instance/core/failure-reason.js';
import { contains } from '../../src/db/reads/filters.js';
import { column } from '../helpers/columns.js';
import { useSession } from '../helpers/database.js';
import { byDepth } from '../helpers/depth.js';

const { client } = useSession();

/** The expression by which the rows of before were filled. */
function migrationSql(message: string): string {
  const file = new URL('../../../src/db/migrations/0031_failure_groups.sql', import.meta.url);
  const folded = /folded_reason = (.*?)\nfrom/s.exec(readFileSync(file, 'utf8'))?.[1] ?? '';
  assert.match(folded, /i\.failure ->> 'message'/);
  return folded.replace("i.failure ->> 'message'", message);
}

async function expectAlike(messages: readonly string[]): Promise<void> {
  const { rows } = await client.query<{ read: string; migrated: string }>(
    `select ${foldedSql('m.text')} as read, ${migrationSql('m.text')} as migrated
     from unnest($1::text[]) with ordinality m (text, at) order by m.at`,
    [messages],
  );
  const folded = messages.map(foldReason);
  assert.deepEqual(column(rows, 'read'), folded);
  assert.deepEqual(column(rows, 'migrated'), folded);
}

/** Messages of one kind are written one behind the other, with a bar between them. */
const MESSAGES: Readonly<Record<string, readonly string[]>> = {
  nothing: ['', ' ', '\n', '#', '…'],
  numbers: '0|order 123|1,204.5 ms|-7|1e9|0x1f|+49 30 1234|3rd|v2|٣ ４ ²'.split('|'),
  ids: [
    '0190b5a4-7d1c-7000-8000-000000000001 is gone',
    '{0190B5A4-7D1C-7000-8000-000000000001}',
    ...'deadbeef cafe-babe c0ffee|order_A-17_b, order A-B|-_-1-_-'.split('|'),
  ],
  quotes: [
    ...`"Ann" knows \`x\` but not 'y'|it's "x"|it's 7 o'clock|"a 'b" c'`.split('|'),
    ...`"|''|\`\`1\`\`|"1|1"|"a\nb"c|\\"x\\"|"…"`.split('|'),
  ],
  unicode: 'naïve42|日本7語|😀1😀|e\u0301 1|\u200b1\u200b|İ1ı|\ufeff9|K\u212A2|“x 1”'.split('|'),
  'what is very long': [
    'x'.repeat(200_000),
    `${'x'.repeat(100_000)}1${'y'.repeat(100_000)}`,
    '1 '.repeat(50_000),
    '"'.repeat(99_999),
    `"${'a1 '.repeat(50_000)}`,
  ],
};

for (const [what, messages] of Object.entries(MESSAGES)) {
  test(`Postgres folds ${what} as the engine does`, () => expectAlike(messages));
}

/** What the rule tells apart, more often than chance would have it. */
const part = fc.oneof(
  fc.constantFrom(...`"|'|\`| |-|_|#|…|"…"|\n|\\|$1|\\1|é|😀`.split('|')),
  fc.integer().map(String),
  fc.uuid(),
  fc.string({ unit: fc.constantFrom(...'0123456789abcdefABCDEF_-') }),
  fc.stringMatching(/^[ -~]{0,20}$/),
  // Postgres has no texts with it, and a message is cleared of it.
  fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\0', '')),
);
const message = fc.array(part, { maxLength: 12 }).map((parts) => parts.join(''));

test('Postgres folds any message as the engine does, and its reasons, too', async () => {
  const some = fc.array(message, { minLength: 1, maxLength: 50 });
  await fc.assert(
    fc.asyncProperty(some, async (messages) => {
      await expectAlike(messages);
      await expectAlike(messages.map(foldReason));
    }),
    { numRuns: byDepth(100, 2_000) },
  );
});

/** Every letter of Unicode that has another case. */
const CASED = Array.from({ length: 0x110000 }, (_, code) => String.fromCodePoint(code)).filter(
  (letter) => letter !== letter.toUpperCase() || letter !== letter.toLowerCase(),
);
const FOUND: readonly (readonly [said: string, sought: string])[] = [
  ...CASED.flatMap((c) =>
    [c.toUpperCase(), c.toLowerCase(), c].map((sought) => [c, sought] as const),
  ),
  ...'Große STRASSE:straße|große Straße:GROẞE|İSTANBUL:istanbul|ΟΔΌΣ:οδός|ΟΔΌΣ:οδόσ|50 %:%|a_b\\c:B\\C'
    .split('|')
    .map((pair) => pair.split(':') as [string, string]),
  ...[['Cafe\u0301 2', 'CAFÉ 2'] as const, ['ﬁne Ｗine', 'FINE wine'] as const],
];

test('a text that is looked for in any case is found in all of Unicode and every locale', async () => {
  const { holds, textsOf } = contains('said');
  const looked = [...FOUND, ['axb', 'a_b'] as const, ['ss', 'ßt'] as const];
  const pairs = looked.map(([said, sought]) => ({ said, sought, texts: textsOf?.(sought) }));
  for (const collation of ['C', 'default']) {
    const { rows } = await client.query(
      `select said, sought from json_to_recordset($1) m (said text, sought text, texts text[])
       where not ${holds?.(`said collate "${collation}"`, 'm.texts')}`,
      [JSON.stringify(pairs)],
    );
    assert.deepEqual(
      rows,
      looked.slice(FOUND.length).map(([said, sought]) => ({ said, sought })),
    );
  }
});
