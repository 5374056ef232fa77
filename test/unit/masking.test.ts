/** Secrets in what comes back from outside: found in every form that they are known to take, and nowhere else. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { masked } from '../../src/core/masking.js';

const bytesOf = (text: string) => [...Buffer.from(text)];
const unitsOf = (text: string) => Array.from({ length: text.length }, (_, i) => text.charCodeAt(i));
const hex = (code: number, length: number) => code.toString(16).padStart(length, '0');
const inHtml = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
const base64 = (text: string) => Buffer.from(text).toString('base64');

const FORMS: Readonly<Record<string, (secret: string) => string>> = {
  'as it is': (secret) => secret,
  'in capitals': (secret) => secret.toUpperCase(),
  'in small letters': (secret) => secret.toLowerCase(),
  'in JSON': (secret) => JSON.stringify(secret),
  'in JSON within JSON': (secret) => JSON.stringify(JSON.stringify({ key: secret })),
  'by the numbers of its letters in JSON': (secret) =>
    unitsOf(secret)
      .map((unit) => `\\u${hex(unit, 4)}`)
      .join(''),
  'in a URL': encodeURIComponent,
  'in a URL within a URL': (secret) => encodeURIComponent(encodeURIComponent(secret)),
  'each byte in a URL': (secret) =>
    bytesOf(secret)
      .map((byte) => `%${hex(byte, 2)}`)
      .join(''),
  'in a form': (secret) => new URLSearchParams({ secret }).toString(),
  'in HTML': inHtml,
  'in HTML within JSON': (secret) => JSON.stringify(inHtml(secret)),
  'by the numbers of its letters in HTML': (secret) =>
    [...secret].map((letter) => `&#${letter.codePointAt(0)};`).join(''),
  'in hex': (secret) => Buffer.from(secret).toString('hex'),
  'in base64': base64,
  'in the base64 of URLs': (secret) => Buffer.from(secret).toString('base64url'),
  'one byte into base64': (secret) => base64(`u${secret}x`),
  'as a password in base64': (secret) => base64(`me:${secret}`),
  'four bytes into base64, in a URL': (secret) => encodeURIComponent(base64(`user${secret}xyz`)),
  'in base64 with broken lines': (secret) => base64(`q${secret}`).replaceAll(/.{7}/g, '$&\r\n'),
};

const SECRETS = [
  'wrong-4711',
  'sk_live_Ab9/+"x\\y é🦁&<z',
  'straße-ΣΑΣ',
  'p%q=r s',
  'k'.repeat(9_001),
];

for (const [form, written] of Object.entries(FORMS)) {
  test(`a secret is masked in every form in which it can come back: ${form}`, () => {
    for (const secret of SECRETS) {
      const text = written(secret);
      const shown = masked({ body: [`of ${text} and`], [text]: { [`${text}.`]: 1 } }, [secret]);
      const left = JSON.stringify(shown);
      assert.ok(left.length < 200 && left.split('[REDACTED]').length === 4, `${secret}: ${left}`);
      assert.match(shown.body[0]!, /^of .{0,20}\[REDACTED\].{0,20} and$/s);
    }
  });
}

test('a number is hidden, too, and what is none of it stays as it is, as the same value', () => {
  const value = { port: 47_114_711, rounded: 1e21, rate: 0.5, list: [null, true, 'of 4711'] };
  assert.equal(masked(value, ['another', '471', '']), value);
  const shown = masked(value, ['47114711', '1000000000000000000000']);
  assert.deepEqual(shown, { ...value, port: '[REDACTED]', rounded: '[REDACTED]' });
});

test('no member is lost where two names look alike, and the longest of two secrets is hidden whole', () => {
  const shown = masked({ key1: 1, KEY1: 2, list: ['key12', 'key1'] }, ['key1', 'key12']);
  assert.deepEqual(shown, {
    '[REDACTED]': 1,
    '[REDACTED] 2': 2,
    list: ['[REDACTED]', '[REDACTED]'],
  });
});
