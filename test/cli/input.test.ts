/** What a person gives the command line: kept as it was written, or refused with the place. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { timeOf } from '../../cli/commands/selection.js';
import { definitionFiles, readDefinitions } from '../../cli/definitions.js';
import { CommandError } from '../../cli/exit.js';
import { jsonOf, textIn } from '../../cli/json-input.js';
import { parseYaml } from '../../cli/yaml.js';
import { plainJson } from '../../src/base/log-text.js';

const folder = mkdtempSync(path.join(tmpdir(), 'cli-input-'));
after(() => rmSync(folder, { recursive: true }));
const put = (name: string, bytes: string | Uint8Array) => {
  const file = path.join(folder, name);
  writeFileSync(file, bytes);
  return file;
};

const refusal = (act: () => unknown): string => {
  try {
    return `taken: ${JSON.stringify(act())}`;
  } catch (error) {
    assert.ok(error instanceof CommandError, String(error));
    assert.equal(error.exitCode, 2);
    return error.message;
  }
};

test('a time is RFC 3339 with a zone, or an age', () => {
  const now = Date.UTC(2026, 0, 31);
  const taken = {
    '7d': '2026-01-24T00:00:00.000Z',
    '2026-01-31T12:00:00+02:00': '2026-01-31T10:00:00.000Z',
  };
  for (const [text, time] of Object.entries(taken)) assert.equal(timeOf(text, 'at', now), time);
  const dates = '2026 2030-02-30 2030-02-30T00:00:00Z 2026-01-31 2026-01-31T12:00:00'.split(' ');
  for (const text of [...dates, '7', '', '1e3', '999999999d', 'tomorrow']) {
    assert.match(
      refusal(() => timeOf(text, 'created-after', now)),
      /^--created-after must be a time/,
    );
  }
});

test('a file may have a byte order mark or be UTF-16; other encodings are refused with the place', () => {
  const text = '{"name": "naïve 注文"}';
  const utf16 = Buffer.from(`\ufeff${text}`, 'utf16le');
  for (const bytes of [`\ufeff${text}`, text, utf16, Buffer.from(utf16).swap16()]) {
    assert.deepEqual(jsonOf(`@${put('marked.json', bytes)}`, '--data'), JSON.parse(text));
  }
  const latin = put('latin.json', Buffer.from('{\n "a": "caf\xe9"}', 'latin1'));
  assert.match(
    refusal(() => textIn(latin, 'latin.json')),
    /^latin\.json is not UTF-8: line 2, column 11 \(byte 12\)$/,
  );
});

test('the command line waits for standard input, however slow its source', async () => {
  const module = new URL('../../cli/json-input.js', import.meta.url).href;
  // Whoever has listened to the stream has made the pipe one that does not block.
  const code =
    `import { textIn } from '${module}'; process.stdin.on('readable', () => undefined); ` +
    "console.log(textIn(0, 'it')); process.stdin.destroy();";
  const child = spawn(process.execPath, ['--input-type=module', '-e', code]);
  let said = '';
  child.stdout.on('data', (part) => {
    said += part;
  });
  child.stderr.on('data', (part) => {
    said += part;
  });
  child.stdin.write('{"a":');
  const slow = setTimeout(() => child.stdin.end('1}'), 600);
  await once(child, 'close');
  clearTimeout(slow);
  assert.equal(said, '{"a":1}\n');
});

test('YAML that would be stored as something else is refused with line and reason', () => {
  for (const [text, why] of [
    ['a:\n  b: {{ data.x }}', /^line 2, column 7: .* in quotes$/],
    ['a: [{{ data.x }}]', /in quotes$/],
    ['a: .inf', /^line 1, column 4: \.inf is not a valid JSON number$/],
    ['a: 9007199254740993', /is beyond 2\^53$/],
    ['a: 1e-400', /too small/],
    ['x: &a {b: 1}\ny:\n  <<: *a', /^line 3, column 3: merge keys/],
    ['a: !!binary aGk=', /the tag !!binary is not supported$/],
    ['a: !job x', /the tag !job is not supported$/],
    ['x: &a {b: [*a]}', /\*a refers to a value that contains it$/],
    ['a: 1\na: 2', /^line 2, column 1: Map keys must be unique/],
    ['a: 1\n---\nb: 2', /multiple documents/],
  ] as const) {
    assert.throws(() => parseYaml(text), { message: why }, text);
  }
  const fine = 'x: &a [1, 0x1f, 1.5]\ny: *a\nz: "{{ data.x }}"\nd: 2001-01-01';
  const list = [1, 31, 1.5];
  assert.deepEqual(parseYaml(fine), { x: list, y: list, z: '{{ data.x }}', d: '2001-01-01' });
});

test('a folder is read recursively, without following links', async () => {
  mkdirSync(path.join(folder, 'flows/deep'), { recursive: true });
  mkdirSync(path.join(folder, 'elsewhere'));
  const own = put('flows/deep/a.yaml', 'name: a\nblocks: []');
  const other = put('elsewhere/b.json', '{"name": "b"}');
  symlinkSync(path.join(folder, 'elsewhere'), path.join(folder, 'flows/linked'));
  symlinkSync(path.join(folder, 'flows'), path.join(folder, 'flows/round'));
  symlinkSync(other, path.join(folder, 'flows/b.json'));
  assert.deepEqual(definitionFiles([path.join(folder, 'flows')]), [own]);
  assert.deepEqual(definitionFiles([other]), [other]);
  const bad = put('flows/bad.yaml', 'name: c\nwhen: {{ data.x }}');
  await assert.rejects(readDefinitions(bad), { message: /bad\.yaml: line 2, column 8: / });
});

test('a file that defines a sequence twice is refused, unless the versions differ', async () => {
  const one = { name: 'a', blocks: [] };
  const names = async (file: string) =>
    (await readDefinitions(file)).map(({ definition }) => definition.name);
  const list = (...definitions: object[]) => put('list.json', JSON.stringify(definitions));
  assert.deepEqual(await names(list(one, { ...one, namespace: 'b' })), ['a', 'a']);
  assert.deepEqual(await names(list({ ...one, version: 1 }, { ...one, version: 2 })), ['a', 'a']);
  await assert.rejects(readDefinitions(list(one, { ...one, namespace: 'default' })), {
    message: /list\.json: defines a twice/,
  });
  await assert.rejects(readDefinitions(list({ ...one, version: 1 }, { ...one, version: 1 })), {
    message: /list\.json: defines version 1 of a twice/,
  });
  const sequence = `{ definition: ${JSON.stringify({ ...one, version: 1 })} }`;
  const again = put('again.mjs', `export const a = ${sequence};\nexport default a;`);
  assert.deepEqual(await names(again), ['a']);
  const twins = put('twins.mjs', `export const v1 = ${sequence};\nexport const v2 = ${sequence};`);
  await assert.rejects(readDefinitions(twins), { message: /twins\.mjs: defines a twice/ });
});

test('JSON on a terminal has no control characters, and is still the same JSON', () => {
  const value = { a: '\u202eevil\u001b[2J\u009b \u{e0001}', b: 'ü👍\n' };
  const text = plainJson(JSON.stringify(value, null, 2));
  assert.doesNotMatch(text.replaceAll('\n', ''), /[\p{Cc}\p{Cf}]/u);
  assert.deepEqual(JSON.parse(text), value);
});
