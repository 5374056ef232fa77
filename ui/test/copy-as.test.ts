/** The texts of *Copy as*: what others paste into a shell or a channel. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { type Copied, formsOf } from '../src/lib/copy-as.ts';

const ID = '01990000-0000-7000-8000-000000000001';

const PLACE = {
  engine: 'https://engine.example/prod',
  dashboard: 'https://engine.example/prod/ui',
  tenant: 'shop',
  needsKey: true,
};

function textsOf(copied: Partial<Copied>, place: Partial<typeof PLACE> = {}) {
  const whole: Copied = {
    command: ['instances', 'explain', ID],
    request: `/instances/${ID}`,
    page: `/instances/${ID}`,
    note: { title: 'charge-order · failed', facts: [['Instance', ID], false] },
    ...copied,
  };
  const forms = formsOf(whole, { ...PLACE, ...place });
  return Object.fromEntries(forms.map(({ label, text }) => [label, text]));
}

test('a thing is copied as a link, as Markdown, as a command and as a request without the key', () => {
  const link = `https://engine.example/prod/ui/instances/${ID}`;
  assert.deepEqual(textsOf({}), {
    Link: link,
    Markdown: `**charge-order · failed**\n\n- Instance: \`${ID}\`\n- Link: <${link}>`,
    'CLI command': `durable-workflow-engine instances explain ${ID} --url https://engine.example/prod --tenant shop`,
    curl: `curl -sS --fail-with-body -H "x-api-key: $KEY" -H 'x-tenant-id: shop' https://engine.example/prod/api/v1/instances/${ID}`,
  });
});

test('an engine that asks for no key is asked without one', () => {
  assert.doesNotMatch(textsOf({}, { needsKey: false }).curl as string, /KEY/);
});

test('a shell takes each word as it was, whatever a name contains', () => {
  const tenant = `o'neil & "sons" $(touch x) \`id\``;
  const texts = textsOf({}, { tenant });
  const command = (texts['CLI command'] as string).replace('durable-workflow-engine', '"%s\\n"');
  const words = execFileSync('sh', ['-c', `printf ${command}`], { encoding: 'utf8' });
  assert.deepEqual(words.trimEnd().split('\n').slice(-2), ['--tenant', tenant]);
  const request = (texts.curl as string).replace('curl', 'printf "%s\\n"');
  const env = { KEY: 'a key', PATH: process.env.PATH };
  const parts = execFileSync('sh', ['-c', request], { encoding: 'utf8', env }).split('\n');
  assert.ok(parts.includes(`x-tenant-id: ${tenant}`));
});

test('names and reasons are shown in Markdown, not interpreted', () => {
  const { Markdown } = textsOf({
    note: {
      title: 'a_b_c *bold*',
      facts: [
        ['Failed at', 'a`b'],
        ['Worker', '`w`'],
      ],
      reason: 'line one\n```\n<@everyone> # no heading',
    },
  });
  const lines = (Markdown as string).split('\n');
  assert.equal(lines[0], '**a\\_b\\_c \\*bold\\***');
  assert.deepEqual(lines.slice(2, 4), ['- Failed at: ``a`b``', '- Worker: `` `w` ``']);
  assert.deepEqual(lines.slice(-5), [
    '````',
    'line one',
    '```',
    '<@everyone> # no heading',
    '````',
  ]);
});

test('a long reason is cut, since the link leads to the rest', () => {
  const { Markdown } = textsOf({ note: { title: '', facts: [], reason: 'x'.repeat(100_000) } });
  assert.ok((Markdown as string).length < 2_000);
});
