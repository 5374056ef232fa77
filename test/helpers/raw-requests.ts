/**
 * Requests as bytes, one character a byte, with what each backend of the transport has to do with them:
 * nothing that a client library would send, and all that an attacker or a broken proxy might. Where
 * uWebSockets.js does otherwise than node:http, the row says what and why, and `docs/reference/http.md`
 * is made of that.
 *
 * An answer is told as the whole conversation on a connection: `200 GET /a "body"` is a request that was
 * served, `400 ENG_VALIDATION` one that was refused with a JSON body and this code, `400 bare` one without
 * either. The last word says whether the connection is `open`, which means that a further request is served,
 * or `closed`.
 */

import { LIMITS } from '../../src/limits.js';

/** What uWebSockets.js does otherwise than node:http, as the documentation tells it. */
export const DIFFERENCES = {
  bare: 'Its own parser refuses the request: 400, 431 or 505 with a line of HTML, without JSON, `x-error-code` and `x-request-id`. The connection is closed.',
  version: 'HTTP/1.0 is answered with 505, and closed.',
  waits:
    'Its parser takes the bytes for the beginning of a request and waits for the rest. Nothing is answered, nothing behind them is served, and the connection is closed after ten seconds.',
  taken: 'It is served; node:http refuses it.',
  ends: 'Bytes beyond ASCII at both ends of the value of a header are dropped, also of `x-tenant-id`. A value that has no others is refused there. Who names tenants in such letters sets `ENGINE_HTTP_BACKEND=node`.',
  chunked:
    'The connection closes behind a chunked body, and what comes with its end is not served: its parser does not tell the next request from what a malformed chunk leaves over.',
  chunks:
    'Its parser takes malformed sizes and ends of chunks, or waits for the bytes that it made of them until the body is too slow (408). The connection is closed all the same.',
  extensions: 'Extensions of chunks are refused, or waited upon until the body is too slow (408).',
  trailers:
    'Trailers are taken for a request: the one with the body is not served, and the connection is closed.',
  continue: 'Every `100-continue` in lower case is told to go on, even if it is refused then.',
  close:
    '`close` counts only as the whole value of `connection`, and what came in the same packet behind it is served, too.',
  upgrade:
    'It serves what comes in one packet behind a request for an upgrade; node:http does not.',
  behind:
    'What comes in one packet behind a refused request closes the connection, so that the refusal is not told.',
  lost: 'What its parser refuses, or what comes behind a refusal, closes the connection: the answer to a good request before it in the same packet is lost.',
  pipelined:
    'It serves one request of a connection at a time: what arrives behind one in work closes the connection without the answer.',
} as const;

export type Difference = keyof typeof DIFFERENCES;

export interface RawRequest {
  readonly group: string;
  readonly name: string;
  /** In pieces that arrive one by one. */
  readonly sent: readonly string[];
  /** Whether the client ends its side of the connection behind it. */
  readonly isEnded: boolean;
  readonly answer: string;
  /** Where uWebSockets.js does something else. */
  readonly uws: Otherwise | undefined;
}

interface Otherwise {
  readonly why: Difference;
  readonly answer: string;
}

/** A row: its name, what is sent, and, where it is not that of the group, what becomes of it. */
type Row = readonly [name: string, sent: string | readonly string[], answer?: string];

interface Group {
  readonly name: string;
  /** What becomes of a row that does not say it. */
  readonly answer: string;
  readonly isEnded?: boolean;
  readonly rows: readonly Row[];
  /** What uWebSockets.js does with rows that are named; the last one that names a row counts. */
  readonly uws?: readonly {
    readonly why: Difference;
    /** Absent: the same, but the connection is closed. */
    readonly answer?: string;
    /** `all`: whichever row has the answer of the group. */
    readonly of: readonly string[] | 'all';
  }[];
  /** Of them all, those with which it does the same. */
  readonly alike?: readonly string[];
}

/** Targets that begin so are answered in a later turn of the event loop. */
export const LATER = '/later';
export const MAX_BODY_BYTES = 1_000;

const SERVED = '200 GET /a, open';
const REFUSED = '400 ENG_VALIDATION, closed';
const LARGE_HEAD = '431 ENG_HEADERS_TOO_LARGE, closed';
const LARGE_BODY = '413 ENG_TOO_LARGE, closed';

const get = (headers = '', target = '/a') => `GET ${target} HTTP/1.1\r\nHost: h\r\n${headers}\r\n`;
const post = (headers: string, body = '') =>
  `POST /a HTTP/1.1\r\nHost: h\r\n${headers}\r\n\r\n${body}`;
const chunked = (body: string) => post('Transfer-Encoding: chunked', body);
const posted = (body: string) => `200 POST /a "${body}", open`;
const hex = (char: string) => `0x${char.charCodeAt(0).toString(16).padStart(2, '0')}`;
const chars = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => String.fromCharCode(from + n));

const LONG = LIMITS.headerBytesMax;

const GROUPS: readonly Group[] = [
  {
    name: 'methods',
    answer: SERVED,
    rows: [
      ...['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'M-SEARCH'].map(
        (method): Row => [
          method,
          `${method} /a HTTP/1.1\r\nHost: h\r\n\r\n`,
          `200 ${method} /a, open`,
        ],
      ),
      ['HEAD', 'HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n', '200 HEAD, open'],
      ['one empty line before it', `\r\n${get()}`],
      ['two empty lines before it', `\r\n\r\n${get()}`],
      ['a bare line feed before it', `\n${get()}`],
    ],
    uws: [
      {
        why: 'waits',
        answer: 'waits',
        of: ['one empty line before it', 'two empty lines before it'],
      },
      { why: 'bare', answer: '505 bare, closed', of: ['a bare line feed before it'] },
    ],
  },
  {
    name: 'request lines',
    answer: REFUSED,
    rows: [
      ...[
        'get',
        'Get',
        'gET',
        'FOO',
        'GETT',
        'GE',
        'G-T',
        'GET\t',
        'GET\0',
        'G\rT',
        '(GET)',
        '"GET"',
        'G\xe4T',
        'X'.repeat(100),
        'PRI',
      ].map(
        (method): Row => [
          `method ${JSON.stringify(method)}`.slice(0, 40),
          `${method} /a HTTP/1.1\r\nHost: h\r\n\r\n`,
        ],
      ),
      ['no method', ' /a HTTP/1.1\r\nHost: h\r\n\r\n'],
      ['a blank before the method', ` ${get()}`],
      ['a tab before the method', `\t${get()}`],
      ['two blanks before the target', 'GET  /a HTTP/1.1\r\nHost: h\r\n\r\n', SERVED],
      ['a tab before the target', 'GET\t/a HTTP/1.1\r\nHost: h\r\n\r\n'],
      ['two blanks before the version', 'GET /a  HTTP/1.1\r\nHost: h\r\n\r\n', SERVED],
      ['a tab before the version', 'GET /a\tHTTP/1.1\r\nHost: h\r\n\r\n'],
      ['no target', 'GET HTTP/1.1\r\nHost: h\r\n\r\n'],
      ['an empty target', 'GET  HTTP/1.1\r\nHost: h\r\n\r\n'],
      ['a fourth word', 'GET /a b HTTP/1.1\r\nHost: h\r\n\r\n'],
      ['words behind the version', 'GET /a HTTP/1.1 x\r\nHost: h\r\n\r\n'],
      ['a blank behind the version', 'GET /a HTTP/1.1 \r\nHost: h\r\n\r\n'],
      ['ended by a bare line feed', 'GET /a HTTP/1.1\nHost: h\r\n\r\n'],
      ['ended by a bare carriage return', 'GET /a HTTP/1.1\rHost: h\r\n\r\n'],
      ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
      ['the greeting of TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
      ['a line of PROXY', `PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n${get()}`],
      ['an answer instead of a request', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'],
      ['only empty lines and words', 'hello\r\nworld\r\n\r\n'],
    ],
    uws: [
      {
        why: 'bare',
        answer: '505 bare, closed',
        of: [
          'method "GET\\t"',
          'method "GET\\u0000"',
          'method "G\u00e4T"',
          'a blank before the method',
          'a tab before the method',
          'two blanks before the target',
          'a tab before the target',
          'two blanks before the version',
          'a tab before the version',
          'no target',
          'an empty target',
          'a fourth word',
          'words behind the version',
          'a blank behind the version',
          'ended by a bare line feed',
          'ended by a bare carriage return',
          'the preface of HTTP/2',
          'the greeting of TLS',
          'a line of PROXY',
          'an answer instead of a request',
        ],
      },
      { why: 'waits', answer: 'waits', of: ['method "G\\rT"', 'only empty lines and words'] },
    ],
  },
  {
    name: 'versions',
    answer: REFUSED,
    rows: [
      ...[
        'HTTP/1.2',
        'HTTP/2.0',
        'HTTP/3.0',
        'HTTP/9.9',
        'HTTP/0.9',
        'HTTP/1.10',
        'HTTP/11',
        'HTTP/01.1',
        'http/1.1',
        'Http/1.1',
        'HTTP/1',
        'HTTP/1.',
        'HTTP/.1',
        'HTTP/-1.1',
        'HTTP/1,1',
        'HTTP/1.1.1',
        'HTTP/a.b',
        'HTTP',
        'HTTPS/1.1',
        'HTP/1.1',
        'X',
      ].map((version): Row => [version, `GET /a ${version}\r\nHost: h\r\n\r\n`]),
      ['no version', 'GET /a\r\nHost: h\r\n\r\n'],
      ['a blank in it', 'GET /a HTTP/ 1.1\r\nHost: h\r\n\r\n'],
      ['HTTP/1.0', 'GET /a HTTP/1.0\r\nHost: h\r\n\r\n', '200 GET /a, closed'],
      ['HTTP/1.0 without a host', 'GET /a HTTP/1.0\r\n\r\n', REFUSED],
      [
        'HTTP/1.0 that keeps its connection',
        'GET /a HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n',
        SERVED,
      ],
      [
        'HTTP/1.0 with a body',
        'POST /a HTTP/1.0\r\nHost: h\r\nContent-Length: 1\r\n\r\nb',
        '200 POST /a "b", closed',
      ],
      [
        'HTTP/1.0 with chunks',
        'POST /a HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\n\r\n',
        REFUSED,
      ],
    ],
    uws: [
      { why: 'bare', answer: '505 bare, closed', of: 'all' },
      {
        why: 'version',
        answer: '505 bare, closed',
        of: [
          'HTTP/1.0',
          'HTTP/1.0 without a host',
          'HTTP/1.0 that keeps its connection',
          'HTTP/1.0 with a body',
          'HTTP/1.0 with chunks',
        ],
      },
      { why: 'waits', answer: 'waits', of: ['no version'] },
    ],
  },
  {
    name: 'targets that are served as they were sent',
    answer: SERVED,
    rows: [
      ...[
        '/',
        '//',
        '//a',
        '/a/',
        '/a//b',
        '/.',
        '/..',
        '/../../etc/passwd',
        '/a/./b/../c',
        '/a;b=c',
        '/%2e%2e/',
        '/%2f',
        '/%00',
        '/%',
        '/%zz',
        '/%e4',
        '/a?',
        '/a?b',
        '/a?b=c&d=e',
        '/a?b?c',
        '/a?/b',
        '/??',
        '/a?%00',
        '/a?b=c%0d%0aX:y',
        '/a:80',
        '/a@b',
        '/http://h/a',
        '/a,b',
        '/*',
        '/a+b',
        '/~a',
        '/"',
        '/<a>',
        '/{a}',
        '/a|b',
        '/a\\b',
        '/\\\\h\\a',
        '/a^b',
        '/a`b',
        "/a'b",
        '/[a]',
        '/$(a)',
      ].map(
        (target): Row => [
          target,
          get('', target),
          `200 GET ${target.endsWith('?') && target.indexOf('?') === target.length - 1 ? target.slice(0, -1) : target}, open`,
        ],
      ),
      [
        'nearly 16 KiB',
        get('', `/${'a'.repeat(LONG - 6)}`),
        `200 GET /${'a'.repeat(LONG - 6)}, open`,
      ],
    ],
  },
  {
    name: 'targets that are refused',
    answer: REFUSED,
    rows: [
      ...[
        ...chars(0, 8),
        '\t',
        '\x0b',
        '\x0c',
        ...chars(0x0e, 0x1f),
        '\x7f',
        '\x80',
        '\xa0',
        '\xe4',
        '\xff',
      ].flatMap((char): Row[] => [[`${hex(char)} in the path`, get('', `/a${char}b`)]]),
      ['0x00 in the query', get('', '/a?b\0')],
      ['0x0d in the query', get('', '/a?b\rc')],
      ['0x7f in the query', get('', '/a?b\x7f')],
      ['UTF-8 in the query', get('', '/a?\xc3\xa4')],
      ['a broken surrogate', get('', '/\xed\xa0\x80')],
      ['a fragment', get('', '/a#b')],
      ['a fragment behind a query', get('', '/a?b#c')],
      ['only a fragment', get('', '#a')],
      ['a word', get('', 'a')],
      ['a dot', get('', '.')],
      ['a query alone', get('', '?a')],
      ['a backslash first', get('', '\\a')],
      ['an asterisk', get('', '*')],
      ['an asterisk of OPTIONS', 'OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n'],
      ['absolute', get('', 'http://h/a')],
      ['absolute, another host', get('', 'http://other/a')],
      ['absolute, https', get('', 'https://h/a')],
      ['absolute, upper case', get('', 'HTTP://H/a')],
      ['absolute, no path', get('', 'http://h')],
      ['absolute, user and password', get('', 'http://a:b@h/a')],
      ['absolute, a file', get('', 'file:///etc/passwd')],
      ['absolute, a script', get('', 'javascript:alert(1)')],
      ['authority of CONNECT', 'CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n'],
      ['path of CONNECT', 'CONNECT /a HTTP/1.1\r\nHost: h\r\n\r\n'],
      ['authority of GET', get('', 'h:80')],
    ],
    uws: [
      { why: 'bare', answer: '505 bare, closed', of: 'all' },
      { why: 'waits', answer: 'waits', of: ['0x0d in the query'] },
    ],
    alike: [
      '0x7f in the path',
      '0x80 in the path',
      '0xa0 in the path',
      '0xe4 in the path',
      '0xff in the path',
      '0x7f in the query',
      'UTF-8 in the query',
      'a broken surrogate',
      'a fragment',
      'a fragment behind a query',
      'path of CONNECT',
    ],
  },
  {
    name: 'heads that are too large',
    answer: LARGE_HEAD,
    rows: [
      ['a target of 16 KiB', get('', `/${'a'.repeat(LONG)}`)],
      ['a target of 20 KiB', get('', `/${'a'.repeat(20 * 1024)}`)],
      ['a target of 32 KiB', get('', `/${'a'.repeat(32 * 1024)}`)],
      ['a target of 64 KiB', get('', `/${'a'.repeat(64 * 1024)}`)],
      ['a query of 64 KiB', get('', `/?${'a'.repeat(64 * 1024)}`)],
      ['a target of 128 KiB', get('', `/${'a'.repeat(128 * 1024)}`)],
      [
        'a target of 64 KiB in pieces',
        [`GET /${'a'.repeat(32 * 1024)}`, 'a'.repeat(32 * 1024), ` HTTP/1.1\r\nHost: h\r\n\r\n`],
      ],
      ['a value of 16 KiB', get(`X-A: ${'a'.repeat(LONG)}\r\n`)],
      ['a value of 64 KiB', get(`X-A: ${'a'.repeat(64 * 1024)}\r\n`)],
      ['a name of 16 KiB', get(`${'x'.repeat(LONG)}: a\r\n`)],
      ['a name of 64 KiB', get(`${'x'.repeat(64 * 1024)}: a\r\n`)],
      ['many small headers of 17 KiB', get(`x-abcdefgh: ${'a'.repeat(500)}\r\n`.repeat(34))],
      ['49 headers', get('X-A: b\r\n'.repeat(48))],
      ['100 headers', get('X-A: b\r\n'.repeat(99))],
      ['101 headers', get('X-A: b\r\n'.repeat(100))],
      ['250 headers', get('X-A: b\r\n'.repeat(249))],
      ['2,500 headers', get('X-A: b\r\n'.repeat(2_499))],
      ['48 headers', get('X-A: b\r\n'.repeat(47)), SERVED],
      ['12 KiB of headers', get(`X-A: ${'a'.repeat(12 * 1024)}\r\n`), SERVED],
      [
        '12 KiB of headers in pieces',
        [
          'GET /a HTTP/1.1\r\nHost: h\r\nX-A: ',
          'a'.repeat(6 * 1024),
          'a'.repeat(6 * 1024),
          '\r\n\r\n',
        ],
        SERVED,
      ],
    ],
    uws: [{ why: 'bare', answer: '431 bare, closed', of: 'all' }],
    alike: [
      'a target of 16 KiB',
      'a target of 20 KiB',
      'a value of 16 KiB',
      'a name of 16 KiB',
      'many small headers of 17 KiB',
      '49 headers',
    ],
  },
  {
    name: 'names of headers',
    answer: REFUSED,
    rows: [
      ...[
        ...chars(0, 9),
        '\x0b',
        '\x0c',
        ...chars(0x0e, 0x1f),
        ' ',
        '"',
        '(',
        ')',
        ',',
        '/',
        ';',
        '<',
        '=',
        '>',
        '?',
        '@',
        '[',
        '\\',
        ']',
        '{',
        '}',
        '\x7f',
        '\x80',
        '\xe4',
        '\xff',
      ].map((char): Row => [`${hex(char)} within`, get(`X${char}A: b\r\n`)]),
      ...['!', '#', '$', '%', '&', "'", '*', '+', '-', '.', '^', '_', '`', '|', '~', '1'].map(
        (char): Row => [`${char} within`, get(`X${char}A: b\r\n`), SERVED],
      ),
      ['a blank before the colon', get('X-A : b\r\n')],
      ['a tab before the colon', get('X-A\t: b\r\n')],
      ['none', get(': b\r\n')],
      ['only a colon', get(':\r\n')],
      ['no colon', get('X-A\r\n')],
      ['a blank before the first header', 'GET /a HTTP/1.1\r\n Host: h\r\n\r\n'],
      ['a blank before host', 'GET /a HTTP/1.1\r\nX: y\r\n Host: h\r\n\r\n'],
      ['a blank behind host', 'GET /a HTTP/1.1\r\nHost : h\r\n\r\n'],
      ['a blank behind content-length', post('Content-Length : 1', 'b')],
      ['a blank behind transfer-encoding', post('Transfer-Encoding : chunked', '0\r\n\r\n')],
      ['a bare carriage return before one', get('\rX-A: b\r\n')],
      ['upper case', 'GET /a HTTP/1.1\r\nHOST: h\r\n\r\n', SERVED],
      ['1 KiB', get(`${'x'.repeat(1_024)}: b\r\n`), SERVED],
      ['__proto__', get('__proto__: b\r\nconstructor: c\r\n'), SERVED],
    ],
    uws: [
      { why: 'bare', answer: '400 bare, closed', of: 'all' },
      { why: 'taken', answer: '200 GET /a, open', of: ['none', 'only a colon'] },
    ],
  },
  {
    name: 'values of headers',
    answer: REFUSED,
    rows: [
      ...[...chars(0, 8), '\x0b', '\x0c', ...chars(0x0e, 0x1f), '\x7f'].map(
        (char): Row => [`${hex(char)} within`, get(`X-A: b${char}c\r\n`)],
      ),
      ...['\t', ' ', '\x80', '\xa0', '\xff', '\xc3\xa4', '"', ',', ':', ';', '\\'].map(
        (char): Row => [
          `${[...char].map(hex).join(' ')} within`,
          get(`X-A: b${char}c\r\n`),
          SERVED,
        ],
      ),
      ['none', get('X-A:\r\n'), SERVED],
      ['only blanks', get('X-A:   \r\n'), SERVED],
      ['no blank before it', get('X-A:b\r\n'), SERVED],
      ['tabs around it', get('X-A:\tb\t\r\n'), SERVED],
      ['folded with a blank', get('X-A: b\r\n c\r\n')],
      ['folded with a tab', get('X-A: b\r\n\tc\r\n')],
      ['folded to nothing', get('X-A: b\r\n \r\n')],
      ['folded before its first word', get('X-A:\r\n b\r\n')],
      ['folded host', 'GET /a HTTP/1.1\r\nHost:\r\n h\r\n\r\n'],
      ['folded content-length', post('Content-Length:\r\n 1', 'b')],
      ['folded transfer-encoding', post('Transfer-Encoding:\r\n chunked', '0\r\n\r\n')],
      ['a header behind a fold', get('X-A: b\r\n X-B: c\r\n')],
      ['ended by a bare line feed', get('X-A: b\n')],
      ['ended by a bare carriage return', get('X-A: b\rX-B: c\r\n')],
      ['ended by two carriage returns', get('X-A: b\r\r\n')],
      ['a bare line feed within', get('X-A: b\nX-B: c\r\n')],
      ['the last empty line a bare line feed', 'GET /a HTTP/1.1\r\nHost: h\r\n\n'],
      ['all lines ended by line feeds', 'GET /a HTTP/1.1\nHost: h\n\n'],
      ['NUL in the key', get('X-Api-Key: a\0b\r\n')],
      ['NUL in host', 'GET /a HTTP/1.1\r\nHost: h\0\r\n\r\n'],
    ],
    uws: [
      { why: 'bare', answer: '400 bare, closed', of: 'all' },
      {
        why: 'waits',
        answer: 'waits',
        of: ['ended by a bare carriage return', 'ended by two carriage returns'],
      },
      { why: 'taken', answer: '200 GET /a, open', of: ['0x7f within'] },
      { why: 'bare', answer: '505 bare, closed', of: ['all lines ended by line feeds'] },
    ],
  },
  {
    name: 'hosts',
    answer: REFUSED,
    rows: [
      ['none', 'GET /a HTTP/1.1\r\n\r\n'],
      ['none, other headers', 'GET /a HTTP/1.1\r\nX-A: b\r\n\r\n'],
      ['twice the same', get('Host: h\r\n')],
      ['twice, two hosts', get('Host: i\r\n')],
      ['twice, in two cases', get('HOST: h\r\n')],
      ['twice, the second empty', get('Host:\r\n')],
      ...[
        'h:80',
        '127.0.0.1',
        '127.0.0.1:8080',
        '[::1]',
        '[::1]:80',
        'a.b.c',
        'H',
        'h.',
        'xn--a',
        ':80',
        'a_b',
      ].map((host): Row => [host, `GET /a HTTP/1.1\r\nHost: ${host}\r\n\r\n`, SERVED]),
      ...[
        'h i',
        'h, i',
        'h/a',
        'http://h',
        'a@h',
        'h#',
        'h?',
        'h\\i',
        'h:80:80',
        'h:x',
        '\xe4',
        '[::1',
        '<h>',
      ].map((host): Row => [host, `GET /a HTTP/1.1\r\nHost: ${host}\r\n\r\n`]),
      ['empty', 'GET /a HTTP/1.1\r\nHost:\r\n\r\n', SERVED],
      ['4 KiB', `GET /a HTTP/1.1\r\nHost: ${'h'.repeat(4_096)}\r\n\r\n`, SERVED],
    ],
    uws: [
      {
        why: 'bare',
        answer: '400 bare, closed',
        of: [
          'none',
          'none, other headers',
          'twice the same',
          'twice, two hosts',
          'twice, in two cases',
          'twice, the second empty',
        ],
      },
      { why: 'ends', answer: '200 GET /a, open', of: ['\u00e4'] },
    ],
  },
  {
    name: 'lengths of bodies',
    answer: REFUSED,
    rows: [
      ['1', post('Content-Length: 1', 'b'), posted('b')],
      ['0', post('Content-Length: 0'), '200 POST /a, open'],
      ['00', post('Content-Length: 00'), '200 POST /a, open'],
      ['01', post('Content-Length: 01', 'b'), posted('b')],
      ['blanks around it', post('Content-Length:  1 ', 'b'), posted('b')],
      ['of a GET', get('Content-Length: 1\r\n') + 'b', '200 GET /a "b", open'],
      [
        'of a DELETE',
        'DELETE /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nb',
        '200 DELETE /a "b", open',
      ],
      ['of a HEAD', 'HEAD /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nb', '200 HEAD, open'],
      ...[
        '',
        '-1',
        '+1',
        '-0',
        '0x1',
        '1.0',
        '1e0',
        '1,1',
        '1, 1',
        '1 1',
        '1;a',
        '1a',
        'a',
        '"1"',
        '\x001',
        '9'.repeat(16),
        '9'.repeat(30),
        '18446744073709551617',
        '4294967297a',
        '\xb2',
      ].map((length): Row => [JSON.stringify(length), post(`Content-Length: ${length}`, 'b')]),
      ['twice the same', post('Content-Length: 1\r\nContent-Length: 1', 'b')],
      ['twice, 1 and 2', post('Content-Length: 1\r\nContent-Length: 2', 'bc')],
      ['twice, 0 and 5', post('Content-Length: 0\r\nContent-Length: 5', 'GET /')],
      ['twice, the second empty', post('Content-Length: 1\r\nContent-Length:', 'b')],
      [
        'the limit',
        post(`Content-Length: ${MAX_BODY_BYTES}`, 'b'.repeat(MAX_BODY_BYTES)),
        posted('b'.repeat(MAX_BODY_BYTES)),
      ],
      [
        'one beyond the limit',
        post(`Content-Length: ${MAX_BODY_BYTES + 1}`, 'b'.repeat(MAX_BODY_BYTES + 1)),
        LARGE_BODY,
      ],
      ['far beyond the limit', post('Content-Length: 999999999'), LARGE_BODY],
      ['4 GiB and one', post('Content-Length: 4294967297'), LARGE_BODY],
      ['15 digits', post(`Content-Length: ${'9'.repeat(15)}`), LARGE_BODY],
    ],
    uws: [{ why: 'bare', answer: '400 bare, closed', of: 'all' }],
    alike: [
      '""',
      '"9999999999999999"',
      '"\u00b2"',
      'twice the same',
      'twice, 1 and 2',
      'twice, 0 and 5',
      'twice, the second empty',
    ],
  },
  {
    name: 'encodings of bodies',
    answer: '415 ENG_UNSUPPORTED_ENCODING, closed',
    rows: [
      ...['gzip', 'GZIP', 'br', 'deflate', 'zstd', 'gzip, gzip', 'identity, gzip', 'x'].map(
        (encoding): Row => [
          encoding,
          post(`Content-Encoding: ${encoding}\r\nContent-Length: 1`, 'b'),
        ],
      ),
      [
        'gzip of chunks',
        post('Content-Encoding: gzip\r\nTransfer-Encoding: chunked', '1\r\nb\r\n0\r\n\r\n'),
      ],
      ['gzip of no body', get('Content-Encoding: gzip\r\n'), SERVED],
      ['identity', post('Content-Encoding: identity\r\nContent-Length: 1', 'b'), posted('b')],
      ['none', post('Content-Encoding:\r\nContent-Length: 1', 'b'), posted('b')],
      [
        'twice',
        post('Content-Encoding: gzip\r\nContent-Encoding: br\r\nContent-Length: 1', 'b'),
        REFUSED,
      ],
    ],
  },
  {
    name: 'encodings of transfer',
    answer: REFUSED,
    rows: [
      ['chunked', chunked('1\r\nb\r\n0\r\n\r\n'), posted('b')],
      ['Chunked', post('Transfer-Encoding: Chunked', '1\r\nb\r\n0\r\n\r\n'), posted('b')],
      ['CHUNKED', post('TRANSFER-ENCODING: CHUNKED', '1\r\nb\r\n0\r\n\r\n'), posted('b')],
      [
        'blanks around it',
        post('Transfer-Encoding:  chunked ', '1\r\nb\r\n0\r\n\r\n'),
        posted('b'),
      ],
      [
        'of a GET',
        `${get('Transfer-Encoding: chunked\r\n')}1\r\nb\r\n0\r\n\r\n`,
        '200 GET /a "b", open',
      ],
      ...[
        '',
        'identity',
        'gzip',
        'xchunked',
        'chunkedx',
        'chunked;q=1',
        'chunked,',
        ', chunked',
        'chunked, chunked',
        'chunked, identity',
        'identity, chunked',
        'gzip, chunked',
        'chunked gzip',
        '"chunked"',
        "'chunked'",
        'ch\x00unked',
        '\x0bchunked',
        'chunked\x0b',
        'chun\tked',
        '\xffchunked',
        'cow',
      ].map(
        (encoding): Row => [
          JSON.stringify(encoding),
          post(`Transfer-Encoding: ${encoding}`, '0\r\n\r\n'),
        ],
      ),
      [
        'twice chunked',
        post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked', '0\r\n\r\n'),
      ],
      [
        'chunked, then identity',
        post('Transfer-Encoding: chunked\r\nTransfer-Encoding: identity', '0\r\n\r\n'),
      ],
      [
        'identity, then chunked',
        post('Transfer-Encoding: identity\r\nTransfer-Encoding: chunked', '0\r\n\r\n'),
      ],
      ['chunked, then none', post('Transfer-Encoding: chunked\r\nTransfer-Encoding:', '0\r\n\r\n')],
      ['a length before it', post('Content-Length: 6\r\nTransfer-Encoding: chunked', '0\r\n\r\nG')],
      ['a length behind it', post('Transfer-Encoding: chunked\r\nContent-Length: 6', '0\r\n\r\nG')],
      [
        'a length of 0 before it',
        post('Content-Length: 0\r\nTransfer-Encoding: chunked', '0\r\n\r\n'),
      ],
      ['a length beside identity', post('Content-Length: 1\r\nTransfer-Encoding: identity', 'b')],
      ['a length beside gzip', post('Content-Length: 1\r\nTransfer-Encoding: gzip', 'b')],
      [
        'a length between two',
        post('Transfer-Encoding: chunked\r\nContent-Length: 1\r\nTransfer-Encoding: x', 'b'),
      ],
      [
        'a request within, by the length',
        post(
          'Content-Length: 4\r\nTransfer-Encoding: chunked',
          `1c\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n\r\n0\r\n\r\n`,
        ),
      ],
      [
        'a request within, by the chunks',
        post('Content-Length: 35\r\nTransfer-Encoding: chunked', `0\r\n\r\n${get('', '/b')}`),
      ],
    ],
    uws: [
      { why: 'bare', answer: '400 bare, closed', of: 'all' },
      { why: 'ends', answer: '200 POST /a, closed', of: ['"\u00ffchunked"'] },
      { why: 'chunked', of: ['chunked', 'Chunked', 'CHUNKED', 'blanks around it', 'of a GET'] },
    ],
    alike: [
      '""',
      '"identity"',
      '"gzip"',
      '"xchunked"',
      '"chunkedx"',
      '"chunked;q=1"',
      '"chunked,"',
      '", chunked"',
      '"chunked, chunked"',
      '"chunked, identity"',
      '"identity, chunked"',
      '"gzip, chunked"',
      '"chunked gzip"',
      '"\\"chunked\\""',
      '"\'chunked\'"',
      '"chun\\tked"',
      '"cow"',
      'twice chunked',
      'chunked, then identity',
      'identity, then chunked',
      'chunked, then none',
    ],
  },
  {
    name: 'chunks',
    answer: REFUSED,
    rows: [
      ['none but the last', chunked('0\r\n\r\n'), '200 POST /a, open'],
      ['two', chunked('1\r\nb\r\n2\r\ncd\r\n0\r\n\r\n'), posted('bcd')],
      ['upper case', chunked(`A\r\n${'b'.repeat(10)}\r\n0\r\n\r\n`), posted('b'.repeat(10))],
      ['lower case', chunked(`a\r\n${'b'.repeat(10)}\r\n0\r\n\r\n`), posted('b'.repeat(10))],
      ['zeros before the size', chunked('0001\r\nb\r\n0\r\n\r\n'), posted('b')],
      ['many zeros as the last', chunked('1\r\nb\r\n0000\r\n\r\n'), posted('b')],
      [
        'line ends within',
        chunked('4\r\n\r\n\r\n\r\n0\r\n\r\n'),
        '200 POST /a "\\r\\n\\r\\n", open',
      ],
      [
        'in pieces',
        [post('Transfer-Encoding: chunked', '1\r'), '\nb', '\r\n0\r\n', '\r\n'],
        posted('b'),
      ],
      [
        'byte by byte',
        [post('Transfer-Encoding: chunked'), ...'2\r\nbc\r\n0\r\n\r\n'],
        posted('bc'),
      ],
      [
        'one of the limit',
        chunked(`3e8\r\n${'b'.repeat(1_000)}\r\n0\r\n\r\n`),
        posted('b'.repeat(1_000)),
      ],
      ['beyond the limit', chunked(`3e9\r\n${'b'.repeat(1_001)}\r\n0\r\n\r\n`), LARGE_BODY],
      ['many beyond the limit', chunked(`${'1\r\nb\r\n'.repeat(1_001)}0\r\n\r\n`), LARGE_BODY],
      ...[
        'zz',
        'g',
        '-1',
        '+1',
        '0x1',
        '1h',
        '1 1',
        ' 1',
        '1 ',
        '\t1',
        '1\t',
        '',
        '1,',
        '1.0',
        '"1"',
        '\x001',
        '1\x00',
        '\xb9',
        'f'.repeat(17),
      ].map(
        (size): Row => [
          `size ${JSON.stringify(size).slice(0, 30)}`,
          chunked(`${size}\r\nb\r\n0\r\n\r\n`),
        ],
      ),
      [
        'many zeros before the size',
        chunked(`${'1'.padStart(300, '0')}\r\nb\r\n0\r\n\r\n`),
        posted('b'),
      ],
      ['a size ended by a line feed', chunked('1\nb\r\n0\r\n\r\n')],
      ['a size ended by a carriage return', chunked('1\rb\r\n0\r\n\r\n')],
      ['data longer than its size', chunked('1\r\nbc\r\n0\r\n\r\n')],
      ['data ended by a line feed', chunked('1\r\nb\n0\r\n\r\n')],
      ['data ended by nothing', chunked('1\r\nb0\r\n\r\n')],
      ['the last ended by line feeds', chunked('1\r\nb\r\n0\n\n')],
      ['a request in place of the last', chunked(`1\r\nb\r\n${get('', '/b')}`)],
    ],
    uws: [
      { why: 'bare', answer: '400 bare, closed', of: 'all' },
      {
        why: 'chunks',
        answer: '200 POST /a "b", closed',
        of: [
          'size "1 1"',
          'size "1 "',
          'size "1\\t"',
          'size "1\\u0000"',
          'a size ended by a line feed',
          'data longer than its size',
          'data ended by a line feed',
          'data ended by nothing',
          'the last ended by line feeds',
        ],
      },
      {
        why: 'bare',
        answer: '505 bare, closed',
        of: ['size " 1"', 'size "\\t1"', 'size ""', 'size "\\u00001"', 'size "\u00b9"'],
      },
      { why: 'chunks', answer: '408, closed', of: ['size "g"'] },
      {
        why: 'chunks',
        answer: '200 POST /a "0", closed',
        of: ['a size ended by a carriage return'],
      },
      {
        why: 'chunked',
        of: [
          'zeros before the size',
          'many zeros as the last',
          'in pieces',
          'many zeros before the size',
          'upper case',
          'lower case',
          'none but the last',
          'two',
          'line ends within',
          'byte by byte',
          'one of the limit',
        ],
      },
    ],
  },
  {
    name: 'extensions of chunks',
    answer: posted('b'),
    rows: [
      ...['a', 'a=b', 'a="b"', 'a="b;c"', 'a=b;c=d', 'a="\\"b"', 'a='.padEnd(200, 'b')].map(
        (extension): Row => [extension.slice(0, 20), chunked(`1;${extension}\r\nb\r\n0\r\n\r\n`)],
      ),
      ['on the last', chunked('1\r\nb\r\n0;a=b\r\n\r\n')],
      ['none behind the semicolon', chunked('1;\r\nb\r\n0\r\n\r\n'), REFUSED],
      ['a blank behind the semicolon', chunked('1; a\r\nb\r\n0\r\n\r\n'), REFUSED],
      ['a blank before the semicolon', chunked('1 ;a\r\nb\r\n0\r\n\r\n'), REFUSED],
      ['a line feed within', chunked('1;a\nb\r\n0\r\n\r\n'), REFUSED],
      ['a carriage return within', chunked('1;a\rb\r\nb\r\n0\r\n\r\n'), REFUSED],
      ['NUL within', chunked('1;a\0\r\nb\r\n0\r\n\r\n'), REFUSED],
      ['a request within', chunked(`1;a\nGET /b HTTP/1.1\nHost: h\n\n\r\nb\r\n0\r\n\r\n`), REFUSED],
      ['20 KiB', chunked(`1;${'a'.repeat(20 * 1024)}\r\nb\r\n0\r\n\r\n`), REFUSED],
    ],
    uws: [
      {
        why: 'extensions',
        answer: '408, closed',
        of: [
          'a',
          'a=b',
          'a=b;c=d',
          'on the last',
          'none behind the semicolon',
          'a blank behind the semicolon',
          'a line feed within',
          'a carriage return within',
          'NUL within',
          'a request within',
        ],
      },
      {
        why: 'extensions',
        answer: '400 bare, closed',
        of: ['a="b"', 'a="b;c"', 'a="\\"b"', 'a=bbbbbbbbbbbbbbbbbb', '20 KiB'],
      },
      {
        why: 'extensions',
        answer: '200 POST /a "b", closed',
        of: ['a blank before the semicolon'],
      },
    ],
  },
  {
    name: 'trailers',
    answer: posted('b'),
    rows: [
      ['one', chunked('1\r\nb\r\n0\r\nX-A: b\r\n\r\n')],
      ['two', chunked('1\r\nb\r\n0\r\nX-A: b\r\nX-B: c\r\n\r\n')],
      ['a key', chunked('1\r\nb\r\n0\r\nX-Api-Key: k\r\n\r\n')],
      ['a tenant', chunked('1\r\nb\r\n0\r\nX-Tenant-Id: t\r\n\r\n')],
      ['a length', chunked('1\r\nb\r\n0\r\nContent-Length: 5\r\n\r\n'), REFUSED],
      ['an encoding', chunked('1\r\nb\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n'), REFUSED],
      ['a host', chunked('1\r\nb\r\n0\r\nHost: i\r\n\r\n')],
      ['a request in place of one', chunked(`1\r\nb\r\n0\r\n${get('', '/b')}`), REFUSED],
      ['no colon', chunked('1\r\nb\r\n0\r\nX-A\r\n\r\n'), REFUSED],
      ['a blank before the colon', chunked('1\r\nb\r\n0\r\nX-A : b\r\n\r\n'), REFUSED],
      ['NUL in a value', chunked('1\r\nb\r\n0\r\nX-A: \0\r\n\r\n'), REFUSED],
      ['folded', chunked('1\r\nb\r\n0\r\nX-A: b\r\n c\r\n\r\n'), REFUSED],
      ['40 KiB', chunked(`1\r\nb\r\n0\r\nX-A: ${'a'.repeat(40 * 1024)}\r\n\r\n`), LARGE_HEAD],
      [
        'announced',
        post('Transfer-Encoding: chunked\r\nTrailer: X-A', '1\r\nb\r\n0\r\nX-A: b\r\n\r\n'),
      ],
    ],
    uws: [
      {
        why: 'trailers',
        answer: '505 bare, closed',
        of: [
          'one',
          'two',
          'a key',
          'a tenant',
          'a length',
          'an encoding',
          'a host',
          'a blank before the colon',
          'NUL in a value',
          'folded',
          '40 KiB',
          'announced',
        ],
      },
      { why: 'trailers', answer: 'closed', of: ['a request in place of one'] },
      { why: 'trailers', answer: '200 POST /a "b", closed', of: ['no colon'] },
    ],
  },
  {
    name: 'expectations',
    answer: SERVED,
    rows: [
      ['100-continue without a body', get('Expect: 100-continue\r\n'), '200 GET /a, closed'],
      [
        '100-continue with its body',
        post('Expect: 100-continue\r\nContent-Length: 1', 'b'),
        '100, 200 POST /a "b", open',
      ],
      [
        '100-continue before its body',
        [post('Expect: 100-continue\r\nContent-Length: 1'), 'b'],
        '100, 200 POST /a "b", open',
      ],
      [
        '100-Continue',
        post('Expect: 100-Continue\r\nContent-Length: 1', 'b'),
        '100, 200 POST /a "b", open',
      ],
      [
        '100-continue before chunks',
        [post('Expect: 100-continue\r\nTransfer-Encoding: chunked'), '1\r\nb\r\n0\r\n\r\n'],
        '100, 200 POST /a "b", open',
      ],
      ['100-continue, too large', post('Expect: 100-continue\r\nContent-Length: 1001'), LARGE_BODY],
      [
        '100-continue, refused',
        get('Expect: 100-continue\r\nX-Api-Key: a\r\nX-Api-Key: b\r\n'),
        REFUSED,
      ],
      ['another one', get('Expect: tea\r\n')],
      ['another one with a body', post('Expect: 200-ok\r\nContent-Length: 1', 'b'), posted('b')],
      ['none', get('Expect:\r\n')],
    ],
    uws: [
      { why: 'continue', answer: '100, 200 GET /a, open', of: ['100-continue without a body'] },
      { why: 'continue', answer: '200 POST /a "b", open', of: ['100-Continue'] },
      {
        why: 'continue',
        answer: '100, 413 ENG_TOO_LARGE, closed',
        of: ['100-continue, too large'],
      },
      { why: 'continue', answer: '100, 400 ENG_VALIDATION, closed', of: ['100-continue, refused'] },
      { why: 'chunked', of: ['100-continue before chunks'] },
    ],
  },
  {
    name: 'connections and upgrades',
    answer: SERVED,
    rows: [
      ['keep-alive', get('Connection: keep-alive\r\n')],
      ['close', get('Connection: close\r\n'), '200 GET /a, closed'],
      ['Close', get('Connection: Close\r\n'), '200 GET /a, closed'],
      ['close among others', get('Connection: x, close\r\n'), '200 GET /a, closed'],
      ['close twice', get('Connection: close\r\nConnection: close\r\n'), '200 GET /a, closed'],
      ['keep-alive and close', get('Connection: keep-alive, close\r\n'), '200 GET /a, closed'],
      ['of a HEAD', 'HEAD /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n', '200 HEAD, closed'],
      [
        'of a refused one',
        get('Connection: keep-alive\r\nX-Api-Key: a\r\nX-Api-Key: b\r\n'),
        REFUSED,
      ],
      ['names host', get('Connection: host\r\n')],
      [
        'names content-length',
        post('Connection: content-length\r\nContent-Length: 1', 'b'),
        posted('b'),
      ],
      [
        'a web socket',
        get(
          'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n',
        ),
      ],
      [
        'a web socket with a body',
        post('Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1', 'b'),
        posted('b'),
      ],
      [
        'HTTP/2',
        get(
          'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n',
        ),
      ],
      [
        'TLS',
        'OPTIONS /a HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: TLS/1.0\r\n\r\n',
        '200 OPTIONS /a, open',
      ],
      ['an upgrade alone', get('Upgrade: websocket\r\n')],
      [
        'an upgrade with a request behind it',
        get('Connection: Upgrade\r\nUpgrade: x\r\n') + get('', '/b'),
        SERVED,
      ],
      ['proxy-connection', get('Proxy-Connection: keep-alive\r\n')],
    ],
    uws: [
      {
        why: 'close',
        answer: '200 GET /a, open',
        of: ['close among others', 'keep-alive and close'],
      },
      {
        why: 'upgrade',
        answer: '200 GET /a, 200 GET /b, open',
        of: ['an upgrade with a request behind it'],
      },
    ],
  },
  {
    name: 'tenants',
    answer: '200 GET /a of "t", open',
    rows: [
      ['a word', get('X-Tenant-Id: t\r\n')],
      ['blanks around it', get('X-Tenant-Id:   t \t\r\n')],
      ['none', get('X-Tenant-Id:\r\n'), '200 GET /a of "", open'],
      ['a blank within', get('X-Tenant-Id: t u\r\n'), '200 GET /a of "t u", open'],
      ['UTF-8 within', get('X-Tenant-Id: gr\xc3\xbcn\r\n'), '200 GET /a of "grün", open'],
      ['UTF-8 at the end', get('X-Tenant-Id: caf\xc3\xa9\r\n'), '200 GET /a of "café", open'],
      ['UTF-8 at the beginning', get('X-Tenant-Id: \xc3\xa9t\r\n'), '200 GET /a of "ét", open'],
      ['nothing but UTF-8', get('X-Tenant-Id: \xc3\xa9\r\n'), '200 GET /a of "é", open'],
      ['no UTF-8', get('X-Tenant-Id: a\xffb\r\n'), '200 GET /a of "a�b", open'],
    ],
    uws: [
      { why: 'ends', answer: '200 GET /a of "caf", open', of: ['UTF-8 at the end'] },
      { why: 'ends', answer: '200 GET /a of "t", open', of: ['UTF-8 at the beginning'] },
      { why: 'ends', answer: REFUSED, of: ['nothing but UTF-8', 'none'] },
    ],
  },
  {
    name: 'headers that come twice',
    answer: REFUSED,
    rows: [
      ...['X-Api-Key', 'X-Tenant-Id', 'Authorization'].flatMap((name): Row[] => [
        [`${name}, the same`, get(`${name}: a\r\n${name}: a\r\n`)],
        [`${name}, two values`, get(`${name}: a\r\n${name}: b\r\n`)],
        [`${name}, in two cases`, get(`${name}: a\r\n${name.toUpperCase()}: b\r\n`)],
        [`${name}, the second empty`, get(`${name}: a\r\n${name}:\r\n`)],
      ]),
      ...[
        'Accept',
        'Origin',
        'Cookie',
        'X-Request-Id',
        'Content-Type',
        'Traceparent',
        'X-Forwarded-For',
        'User-Agent',
      ].map((name): Row => [name, get(`${name}: a\r\n${name}: b\r\n`), SERVED]),
    ],
  },
  {
    name: 'requests behind requests',
    answer: '200 GET /a, 200 GET /b, open',
    rows: [
      ['two', get() + get('', '/b')],
      [
        'three with bodies',
        post('Content-Length: 1', 'b') + chunked('1\r\nc\r\n0\r\n\r\n') + get(),
        '200 POST /a "b", 200 POST /a "c", 200 GET /a, open',
      ],
      ['an empty line between', `${get()}\r\n${get('', '/b')}`],
      [
        'one behind HEAD',
        `HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n${get('', '/b')}`,
        '200 HEAD, 200 GET /b, open',
      ],
      [
        'one behind 100 Continue',
        post('Expect: 100-continue\r\nContent-Length: 1', 'b') + get(),
        '100, 200 POST /a "b", 200 GET /a, open',
      ],
      ['one in pieces', [`${get()}GET /b HT`, 'TP/1.1\r\nHost: h\r\n\r\n']],
      ['twenty', get().repeat(20), `${'200 GET /a, '.repeat(20)}open`],
      ['one behind close', get('Connection: close\r\n') + get('', '/b'), '200 GET /a, closed'],
      ['one behind a refusal', get('X-Api-Key: a\r\nX-Api-Key: b\r\n') + get('', '/b'), REFUSED],
      ['one behind a refused target', get('', '/\xe4') + get('', '/b'), REFUSED],
      ['one behind a malformed one', get('X A: b\r\n') + get('', '/b'), REFUSED],
      ['one behind one without a host', `GET /a HTTP/1.1\r\n\r\n${get('', '/b')}`, REFUSED],
      ['one behind a head too large', get('X-A: b\r\n'.repeat(60)) + get('', '/b'), LARGE_HEAD],
      [
        'one behind a body too large',
        post('Content-Length: 1001', 'b'.repeat(1_001)) + get('', '/b'),
        LARGE_BODY,
      ],
      [
        'one behind chunks too large',
        chunked(`3e9\r\n${'b'.repeat(1_001)}\r\n0\r\n\r\n`) + get('', '/b'),
        LARGE_BODY,
      ],
      [
        'one behind an ambiguous length',
        post('Content-Length: 1\r\nContent-Length: 2', 'bc') + get('', '/b'),
        REFUSED,
      ],
      [
        'one behind length and chunks',
        post('Content-Length: 5\r\nTransfer-Encoding: chunked', '0\r\n\r\n') + get('', '/b'),
        REFUSED,
      ],
      ['one behind a bad chunk', chunked('z\r\n') + get('', '/b'), REFUSED],
      [
        'a body longer than its length',
        post('Content-Length: 1', 'bGET') + get('', '/b'),
        '200 POST /a "b", 400 ENG_VALIDATION, closed',
      ],
      [
        'a body without a length',
        post('X-A: b', 'b=c') + get('', '/b'),
        '200 POST /a, 400 ENG_VALIDATION, closed',
      ],
      [
        'a refused one behind a good one',
        get() + get('X-Api-Key: a\r\nX-Api-Key: b\r\n', '/b') + get('', '/c'),
        '200 GET /a, 400 ENG_VALIDATION, closed',
      ],
      [
        'a malformed one behind a good one',
        get() + get('X A: b\r\n', '/b') + get('', '/c'),
        '200 GET /a, 400 ENG_VALIDATION, closed',
      ],
      [
        'words behind a good one',
        `${get()}hello\r\n\r\n`,
        '200 GET /a, 400 ENG_VALIDATION, closed',
      ],
      [
        'words behind a good one, later',
        [get(), 'hello\r\n\r\n'],
        '200 GET /a, 400 ENG_VALIDATION, closed',
      ],
      [
        'one too large behind a good one',
        get() + post('Content-Length: 1001', 'b'.repeat(1_001)),
        '200 GET /a, 413 ENG_TOO_LARGE, closed',
      ],
      [
        'a good one behind one in work',
        get('', LATER) + get(),
        `200 GET ${LATER}, 200 GET /a, open`,
      ],
      [
        'a good one behind one in work, in a packet of its own',
        [get('', LATER), get()],
        `200 GET ${LATER}, 200 GET /a, open`,
      ],
      [
        'a refused one behind one in work',
        get('', LATER) + get('X-Api-Key: a\r\nX-Api-Key: b\r\n'),
        `200 GET ${LATER}, 400 ENG_VALIDATION, closed`,
      ],
      [
        'a malformed one behind one in work',
        get('', LATER) + get('X A: b\r\n'),
        `200 GET ${LATER}, 400 ENG_VALIDATION, closed`,
      ],
    ],
    uws: [
      {
        why: 'behind',
        answer: 'closed',
        of: [
          'one behind a refusal',
          'one behind a refused target',
          'one behind a head too large',
          'one behind a body too large',
          'one behind chunks too large',
          'one behind an ambiguous length',
        ],
      },
      {
        why: 'bare',
        answer: '400 bare, closed',
        of: [
          'one behind a malformed one',
          'one behind one without a host',
          'one behind length and chunks',
          'one behind a bad chunk',
        ],
      },
      {
        why: 'waits',
        answer: '200 GET /a, waits',
        of: ['an empty line between', 'words behind a good one', 'words behind a good one, later'],
      },
      {
        why: 'pipelined',
        answer: 'closed, unanswered GET /later',
        of: [
          'a good one behind one in work',
          'a good one behind one in work, in a packet of its own',
          'a refused one behind one in work',
        ],
      },
      { why: 'pipelined', answer: 'closed, unanswered POST /a "b"', of: ['three with bodies'] },
      { why: 'close', answer: '200 GET /a, 200 GET /b, open', of: ['one behind close'] },
      { why: 'lost', answer: 'closed, unanswered GET /a', of: ['a refused one behind a good one'] },
      {
        why: 'lost',
        answer: '400 bare, closed, unanswered GET /a',
        of: ['a malformed one behind a good one'],
      },
      {
        why: 'pipelined',
        answer: '400 bare, closed, unanswered GET /later',
        of: ['a malformed one behind one in work'],
      },
    ],
  },
  {
    name: 'clients that end their side',
    answer: 'closed',
    isEnded: true,
    rows: [
      ['nothing', ''],
      ['an empty line', '\r\n'],
      ['a part of the method', 'GE'],
      ['a part of the request line', 'GET /a HT'],
      ['a part of the headers', 'GET /a HTTP/1.1\r\nHost: h\r\nX-'],
      ['all but the last line feed', 'GET /a HTTP/1.1\r\nHost: h\r\n\r'],
      ['a part of the body', post('Content-Length: 5', 'b')],
      ['no body', post('Content-Length: 5')],
      ['a part of a chunk', chunked('5\r\nb')],
      ['all but the last chunk', chunked('1\r\nb\r\n')],
      ['all but the end of the trailers', chunked('1\r\nb\r\n0\r\n')],
      ['a request', get(), '200 GET /a, closed'],
      ['two requests', get() + get('', '/b'), '200 GET /a, 200 GET /b, closed'],
      ['a request and a part of another one', `${get()}GET /b`, '200 GET /a, closed'],
    ],
    uws: [
      {
        why: 'trailers',
        answer: '200 POST /a "b", closed',
        of: ['all but the end of the trailers'],
      },
    ],
  },
];

/** @throws Error when a difference is told of a row that is not there */
function rowsOf(group: Group): RawRequest[] {
  const names = group.rows.map(([name]) => name);
  const told = [...(group.uws ?? []).flatMap(({ of }) => (of === 'all' ? [] : of))];
  const unknown = [...told, ...(group.alike ?? [])].filter((name) => !names.includes(name));
  if (unknown.length > 0 || new Set(names).size < names.length) {
    throw new Error(`${group.name}: no such row, or two of one name: ${unknown.join()}`);
  }
  return group.rows.map(([name, sent, answer = group.answer]) => ({
    group: group.name,
    name,
    sent: typeof sent === 'string' ? [sent] : sent,
    isEnded: group.isEnded ?? false,
    answer,
    uws: otherwise(group, name, answer),
  }));
}

function otherwise(group: Group, name: string, answer: string): Otherwise | undefined {
  if (group.alike?.includes(name)) return undefined;
  const found = group.uws?.findLast(({ of }) =>
    of === 'all' ? answer === group.answer : of.includes(name),
  );
  if (found === undefined) return undefined;
  return { why: found.why, answer: found.answer ?? answer.replace(/open$/, 'closed') };
}

export const RAW_REQUESTS: readonly RawRequest[] = GROUPS.flatMap(rowsOf);
