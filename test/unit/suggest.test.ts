/** Guesses at what was meant by a word that nothing is called. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { misspelt, suggest } from '../../src/core/suggest.js';
import { casesIn } from '../helpers/table.js';

const MEMBERS =
  'type id handler params retry timeout when initial_backoff max_backoff max_attempts len starts_with url parallel'.split(
    ' ',
  );
const HANDLERS = 'noop log sleep http_request fail transform assert'.split(' ');

test('a word is taken for the nearest one that is known', () => {
  const cases = casesIn(`
# slips: a letter missing, too many, wrong; two exchanged; two slips
timout         | timeout
paramms        | params
hendler        | handler
tpye           | type
paralell       | parallel
ulr            | url
# the case and the separators of another language
initialBackoff | initial_backoff
max-attempts   | max_attempts
startswith     | starts_with
Retry          | retry
# the same stem
retries        | retry
length         | len
timeout_ms     | timeout
# nothing is near
description    | -
x              | -
  `);
  for (const [word, meant] of cases) {
    assert.equal(suggest(word!, MEMBERS) ?? '-', meant, word);
  }
  assert.equal(suggest('', MEMBERS), undefined);
  assert.equal(suggest('timeout'.repeat(20), MEMBERS), undefined);
});

test('the nearest of several words is named, and of equally near ones the first', () => {
  assert.equal(suggest('max_backof', MEMBERS), 'max_backoff');
  assert.equal(suggest('cat', ['cut', 'cot']), 'cut');
  assert.equal(suggest('handler', []), undefined);
});

test('names that anybody may choose are compared by slips alone', () => {
  const cases = casesIn(`
htp_request     | http_request
http-request    | http_request
HTTPRequest     | http_request
Sleep           | sleep
transform_order | -
mail            | -
send_invoice    | -
  `);
  for (const [word, meant] of cases) {
    assert.equal(misspelt(word!, HANDLERS) ?? '-', meant, word);
  }
});
