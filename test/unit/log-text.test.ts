/** Lines of the log for people: what they show, and that nothing in them reaches the terminal as a command. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { palette, textLine } from '../../src/log-text.js';

const PLAIN = palette(false);
const time = '2026-01-31T10:11:12.345Z';

function shown(fields: object, paint = PLAIN): string {
  const line = textLine(JSON.stringify({ time, level: 30, thread: 'front', ...fields }), paint);
  return line.replace(/\d\d:11:12/, 'TIME');
}

test('a line has the time, the message and its fields', () => {
  assert.equal(
    shown({ msg: 'ready', epoch: 1, url: 'http://h:1', isNew: true, ms: 1.23456, none: null }),
    'TIME ready epoch=1 url=http://h:1 isNew=true ms=1.235 none=null\n',
  );
});

test('what is wrong begins the line, and threads but the first are named', () => {
  assert.equal(shown({ level: 40, msg: 'slow', thread: 'shard-0' }), 'TIME WARN slow [shard-0]\n');
  assert.equal(shown({ level: 60, msg: 'gone', thread: 'writer' }), 'TIME ERROR gone [writer]\n');
});

test('an error is its type, code and message; the stack is shown below what is grave', () => {
  const err = { type: 'TypeError', code: 'E1', message: 'no x', stack: '    at f (a.js:1:2)' };
  assert.equal(shown({ level: 40, msg: 'm', err }), 'TIME WARN m error="TypeError E1: no x"\n');
  assert.equal(
    shown({ level: 50, msg: 'm', err }),
    'TIME ERROR m error="TypeError E1: no x"\n    at f (a.js:1:2)\n',
  );
  assert.equal(shown({ level: 40, msg: 'm', err: { type: 'Error' } }), 'TIME WARN m error=Error\n');
});

test('nothing that a caller sends moves the cursor, colours the terminal or begins another line', () => {
  const hostile = '\u001b[2J\u009b31m\r\nTIME ready\u202e\u2028';
  for (const line of [
    shown({ msg: 'm', tenantId: hostile }),
    shown({ msg: hostile }),
    shown({ msg: 'm', [hostile]: { [hostile]: hostile } }),
    shown({ msg: 'm', err: { type: hostile, message: hostile } }),
    shown({ level: 50, msg: 'm', err: { stack: hostile.replace('\n', '') } }).replace('\n', ''),
    shown({ msg: 'm', thread: hostile }),
  ]) {
    assert.match(line, /^[^\p{Cc}\p{Cf}\u2028]*\n$/u);
  }
});

test('a text with blanks is quoted, so that no field can be taken for another', () => {
  assert.equal(shown({ msg: 'm', a: 'x b=1', b: ['y z'] }), 'TIME m a="x b=1" b=["y z"]\n');
});

test('colours are there only where they are wanted', () => {
  const codes = new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, 'g');
  const coloured = shown({ level: 40, msg: 'm', a: 1 }, palette(true));
  assert.match(coloured, codes);
  assert.equal(coloured.replace(codes, ''), shown({ level: 40, msg: 'm', a: 1 }));
});
