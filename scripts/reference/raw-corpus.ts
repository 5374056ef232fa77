/**
 * Requests as bytes, one character a byte, with what each backend of the transport has to do with them:
 * nothing that a client library would send, and all that an attacker or a broken proxy might. Where
 * uWebSockets.js does otherwise than node:http, the row says what and why, and `docs/reference/http.md`
 * is made of that.
 *
 * An answer is the whole conversation on a connection: `200 GET /a "body"` is a request that was
 * served, `400 ENG_VALIDATION` one that was refused with a JSON body and this code, `400 bare` one without
 * either. The last word says whether the connection is `open`, which means that a further request is served,
 * or `closed`.
 */

import { LIMITS } from '../../src/base/limits.js';
import type { Difference } from './raw-requests.js';

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

type Otherwise = { readonly why: Difference; readonly answer: string };

/**
 * A row: its name, what is sent, and, where they are not those of the group, what becomes of it and what
 * uWebSockets.js makes of it.
 */
type Row = readonly [
  name: string,
  sent: string | readonly string[],
  answer?: string,
  uws?: Other | typeof ALIKE,
];

interface Group {
  readonly name: string;
  /** What becomes of a row that does not say it. */
  readonly answer: string;
  /** What uWebSockets.js makes of rows with that answer that do not say it. */
  readonly uws?: Other;
  readonly isEnded?: boolean;
  readonly rows: readonly Row[];
}

/** Without an answer it is the same, but the connection is closed. */
type Other = readonly [why: Difference, answer?: string];

/** Targets that begin so are answered in a later turn of the event loop. */
export const LATER = '/later';
export const MAX_BODY_BYTES = 1_000;

const SERVED = '200 GET /a, open';
const REFUSED = '400 ENG_VALIDATION, closed';
const LARGE_HEAD = '431 ENG_HEADERS_TOO_LARGE, closed';
const LARGE_BODY = '413 ENG_TOO_LARGE, closed';

const SERVED_LAST = '200 GET /a, closed';
const TWICE_SERVED = '200 GET /a, 200 GET /b, open';
const ONE_AND_REFUSED = '200 GET /a, 400 ENG_VALIDATION, closed';
const LATER_REFUSED = `200 GET ${LATER}, 400 ENG_VALIDATION, closed`;
const CONTINUED = '100, 200 POST /a "b", open';
const posted = (body: string) => `200 POST /a "${body}", open`;
const POSTED_LAST = '200 POST /a "b", closed';
const servedOf = (tenant: string) => `200 GET /a of "${tenant}", open`;
const BOTH_SERVED = `200 GET ${LATER}, 200 GET /a, open`;

const ALIKE = 'alike';
const BARE_400: Other = ['bare', '400 bare, closed'];
const BARE_431: Other = ['bare', '431 bare, closed'];
const BARE_505: Other = ['bare', '505 bare, closed'];
const NOT_1_0: Other = ['version', '505 bare, closed'];
const WAITS: Other = ['waits', 'waits'];
const WAITS_AFTER: Other = ['waits', '200 GET /a, waits'];
const TAKEN: Other = ['taken', SERVED];
const LOST_BYTES: Other = ['ends', '200 POST /a, closed'];
const CHUNKED: Other = ['chunked'];
const TAKEN_CHUNK: Other = ['chunks', POSTED_LAST];
const SLOW: Other = ['extensions', '408, closed'];
const BARE_EXTENSION: Other = ['extensions', '400 bare, closed'];
const TRAILERS: Other = ['trailers', '505 bare, closed'];
const LOST_TRAILER: Other = ['trailers', POSTED_LAST];
const OPEN_ALL_THE_SAME: Other = ['close', SERVED];
const BEHIND: Other = ['behind', 'closed'];
const PIPELINED: Other = ['pipelined', `closed, unanswered GET ${LATER}`];

const CLOSE = 'Connection: close\r\n';
const KEEP = 'Connection: keep-alive\r\n';
const CODED = 'Transfer-Encoding: chunked\r\n';
const ONE_BYTE = 'Content-Length: 1\r\n';
const TWO_KEYS = 'X-Api-Key: a\r\nX-Api-Key: b\r\n';
const ONE_CHUNK = '1\r\nb\r\n0\r\n\r\n';
const LAST = '0\r\n\r\n';
const EXPECT = 'Expect: 100-continue\r\n';
const headed = (line: string, headers: string) => `${line}\r\nHost: h\r\n${headers}\r\n`;
const first = (line: string) => headed(line, '');
const get = (headers = '', target = '/a') => headed(`GET ${target} HTTP/1.1`, headers);
const ofTenant = (tenant: string) => get(`X-Tenant-Id: ${tenant}\r\n`);
const many = (count: number) => get('X-A: b\r\n'.repeat(count));
const post = (headers: string, body = '') =>
  `${headed('POST /a HTTP/1.1', `${headers}\r\n`)}${body}`;
const bodied = (length: string, body = '') => post(`Content-Length: ${length}`, body);
/** A length beside chunks. */
const both = (length: string, body = '') => bodied(`${length}\r\nTransfer-Encoding: chunked`, body);
const encoded = (encoding: string, body = '') => post(`Transfer-Encoding: ${encoding}`, body);
const chunked = (body: string) => encoded('chunked', body);
/** With the last chunk behind them. */
const chunks = (body: string) => chunked(body + LAST);
const trailed = (trailer: string) => chunked(`1\r\nb\r\n0\r\n${trailer}\r\n\r\n`);
const NEXT = get('', '/b');
const bs = (count: number) => 'b'.repeat(count);
const packed = (encoding: string) =>
  post(`Content-Encoding: ${encoding}\r\nContent-Length: 1`, 'b');
const IN_PIECES = [
  'POST /a HTTP/1.1\r\nHo',
  'st: h\r\nContent-Length: 9\r\n\r\n',
  'ab',
  'cdefg',
  'hi',
];
const TWO_LENGTHS = bodied('1\r\nContent-Length: 2', 'bc');
const GET_LATER = get('', LATER);
const LONG_POST = bodied('1001', bs(1_001));
const words = (text: string) => text.split(/\s+/);
const fill = (count: number) => 'a'.repeat(count);
const kib = (count: number) => fill(count * 1024);
const hex = (char: string) => `0x${char.charCodeAt(0).toString(16).padStart(2, '0')}`;
const chars = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => String.fromCharCode(from + n));
/** Without tab, line feed and carriage return, which mean something. */
const CONTROLS = [...chars(0, 8), '\x0b', '\x0c', ...chars(0x0e, 0x1f)];

const LONG = LIMITS.headerBytesMax;

const method = (name: string, uws: Other | typeof ALIKE = ALIKE): Row => [
  `method ${JSON.stringify(name)}`.slice(0, 40),
  first(`${name} /a HTTP/1.1`),
  REFUSED,
  uws,
];
const sized = (size: string, uws: Other = BARE_400): Row => [
  `size ${JSON.stringify(size).slice(0, 30)}`,
  chunks(`${size}\r\nb\r\n`),
  REFUSED,
  uws,
];
const extended = (extension: string, uws: Other): Row => [
  extension.slice(0, 20),
  chunks(`1;${extension}\r\nb\r\n`),
  posted('b'),
  uws,
];

const GROUPS: readonly Group[] = [
  {
    name: 'methods',
    answer: SERVED,
    rows: [
      ...words('POST PUT PATCH DELETE OPTIONS TRACE PROPFIND M-SEARCH').map(
        (method): Row => [method, first(`${method} /a HTTP/1.1`), `200 ${method} /a, open`],
      ),
      ['HEAD', first('HEAD /a HTTP/1.1'), '200 HEAD, open'],
      ['one empty line before it', `\r\n${get()}`, SERVED, WAITS],
      ['two empty lines before it', `\r\n\r\n${get()}`, SERVED, WAITS],
      ['a bare line feed before it', `\n${get()}`, SERVED, BARE_505],
    ],
  },
  {
    name: 'request lines',
    answer: REFUSED,
    rows: [
      ...[...words('get Get gET FOO GETT GE G-T (GET) "GET" PRI'), 'X'.repeat(100)].map((name) =>
        method(name),
      ),
      ...['GET\t', 'GET\0', 'G\xe4T'].map((name) => method(name, BARE_505)),
      method('G\rT', WAITS),
      ['no method', ' /a HTTP/1.1\r\nHost: h\r\n\r\n'],
      ['a blank before the method', ` ${get()}`, REFUSED, BARE_505],
      ['a tab before the method', `\t${get()}`, REFUSED, BARE_505],
      ['two blanks before the target', first('GET  /a HTTP/1.1'), SERVED, BARE_505],
      ['a tab before the target', first('GET\t/a HTTP/1.1'), REFUSED, BARE_505],
      ['two blanks before the version', first('GET /a  HTTP/1.1'), SERVED, BARE_505],
      ['a tab before the version', first('GET /a\tHTTP/1.1'), REFUSED, BARE_505],
      ['no target', first('GET HTTP/1.1'), REFUSED, BARE_505],
      ['an empty target', first('GET  HTTP/1.1'), REFUSED, BARE_505],
      ['a fourth word', first('GET /a b HTTP/1.1'), REFUSED, BARE_505],
      ['words behind the version', first('GET /a HTTP/1.1 x'), REFUSED, BARE_505],
      ['a blank behind the version', first('GET /a HTTP/1.1 '), REFUSED, BARE_505],
      ['ended by a bare line feed', 'GET /a HTTP/1.1\nHost: h\r\n\r\n', REFUSED, BARE_505],
      ['ended by a bare carriage return', 'GET /a HTTP/1.1\rHost: h\r\n\r\n', REFUSED, BARE_505],
      ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', REFUSED, BARE_505],
      ['a greeting of TLS', '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n\r\n', REFUSED, BARE_505],
      ['a line of PROXY', `PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n${get()}`, REFUSED, BARE_505],
      [
        'an answer instead of a request',
        'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
        REFUSED,
        BARE_505,
      ],
      ['only empty lines and words', 'hello\r\nworld\r\n\r\n', REFUSED, WAITS],
    ],
  },
  {
    name: 'versions',
    answer: REFUSED,
    uws: BARE_505,
    rows: [
      ...words(
        `HTTP/1.2 HTTP/2.0 HTTP/3.0 HTTP/9.9 HTTP/0.9 HTTP/1.10 HTTP/11 HTTP/01.1 http/1.1 Http/1.1
        HTTP/1 HTTP/1. HTTP/.1 HTTP/-1.1 HTTP/1,1 HTTP/1.1.1 HTTP/a.b HTTP HTTPS/1.1 HTP/1.1 X`,
      ).map((version): Row => [version, first(`GET /a ${version}`)]),
      ['no version', first('GET /a'), REFUSED, WAITS],
      ['a blank in it', first('GET /a HTTP/ 1.1')],
      ['HTTP/1.0', first('GET /a HTTP/1.0'), SERVED_LAST, NOT_1_0],
      ['HTTP/1.0 without a host', 'GET /a HTTP/1.0\r\n\r\n', REFUSED, NOT_1_0],
      ['HTTP/1.0 that keeps its connection', headed('GET /a HTTP/1.0', KEEP), SERVED, NOT_1_0],
      ['HTTP/1.0 with a body', `${headed('POST /a HTTP/1.0', ONE_BYTE)}b`, POSTED_LAST, NOT_1_0],
      ['HTTP/1.0 with chunks', headed('POST /a HTTP/1.0', CODED) + ONE_CHUNK, REFUSED, NOT_1_0],
    ],
  },
  {
    name: 'targets that are served as they were sent',
    answer: SERVED,
    rows: [
      ...words(
        `/ // //a /a/ /a//b /. /.. /../../etc/passwd /a/./b/../c /a;b=c /%2e%2e/ /%2f /%00 /% /%zz /%e4
        /a?b /a?b=c&d=e /a?b?c /a?/b /?? /a?%00 /a?b=c%0d%0aX:y /a:80 /a@b /http://h/a /a,b /* /a+b /~a
        /" /<a> /{a} /a|b /a\\b /\\\\h\\a /a^b /a\`b /a'b /[a] /$(a)`,
      ).map((target): Row => [target, get('', target), `200 GET ${target}, open`]),
      ['/a?', get('', '/a?'), SERVED],
      ['nearly 16 KiB', get('', `/${fill(LONG - 6)}`), `200 GET /${fill(LONG - 6)}, open`],
    ],
  },
  {
    name: 'targets that are refused',
    answer: REFUSED,
    uws: BARE_505,
    rows: [
      ...[...CONTROLS, '\t'].map(
        (char): Row => [`${hex(char)} in the path`, get('', `/a${char}b`)],
      ),
      ...[...'\x7f\x80\xa0\xe4\xff'].map(
        (char): Row => [`${hex(char)} in the path`, get('', `/a${char}b`), REFUSED, ALIKE],
      ),
      ['0x00 in the query', get('', '/a?b\0')],
      ['0x0d in the query', get('', '/a?b\rc'), REFUSED, WAITS],
      ['0x7f in the query', get('', '/a?b\x7f'), REFUSED, ALIKE],
      ['UTF-8 in the query', get('', '/a?\xc3\xa4'), REFUSED, ALIKE],
      ['a broken surrogate', get('', '/\xed\xa0\x80'), REFUSED, ALIKE],
      ['a fragment', get('', '/a#b'), REFUSED, ALIKE],
      ['a fragment behind a query', get('', '/a?b#c'), REFUSED, ALIKE],
      ['only a fragment', get('', '#a')],
      ['a word', get('', 'a')],
      ['a dot', get('', '.')],
      ['a query alone', get('', '?a')],
      ['a backslash first', get('', '\\a')],
      ['an asterisk', get('', '*')],
      ['an asterisk of OPTIONS', first('OPTIONS * HTTP/1.1')],
      ['absolute', get('', 'http://h/a')],
      ['absolute, another host', get('', 'http://other/a')],
      ['absolute, https', get('', 'https://h/a')],
      ['absolute, upper case', get('', 'HTTP://H/a')],
      ['absolute, no path', get('', 'http://h')],
      ['absolute, user and password', get('', 'http://a:b@h/a')],
      ['absolute, a file', get('', 'file:///etc/passwd')],
      ['absolute, a script', get('', 'javascript:alert(1)')],
      ['authority of CONNECT', 'CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n'],
      ['path of CONNECT', first('CONNECT /a HTTP/1.1'), REFUSED, ALIKE],
      ['authority of GET', get('', 'h:80')],
    ],
  },
  {
    name: 'heads that are too large',
    answer: LARGE_HEAD,
    uws: BARE_431,
    rows: [
      ['a target of 16 KiB', get('', `/${fill(LONG)}`), LARGE_HEAD, ALIKE],
      ['a target of 20 KiB', get('', `/${kib(20)}`), LARGE_HEAD, ALIKE],
      ['a target of 32 KiB', get('', `/${kib(32)}`)],
      ['a target of 64 KiB', get('', `/${kib(64)}`)],
      ['a query of 64 KiB', get('', `/?${kib(64)}`)],
      ['a target of 128 KiB', get('', `/${kib(128)}`)],
      ['a value of 16 KiB', get(`X-A: ${fill(LONG)}\r\n`), LARGE_HEAD, ALIKE],
      ['a value of 64 KiB', get(`X-A: ${kib(64)}\r\n`)],
      ['a name of 16 KiB', get(`${'x'.repeat(LONG)}: a\r\n`), LARGE_HEAD, ALIKE],
      ['a name of 64 KiB', get(`${'x'.repeat(64 * 1024)}: a\r\n`)],
      [
        'many small headers of 17 KiB',
        get(`x-abcdefgh: ${fill(500)}\r\n`.repeat(34)),
        LARGE_HEAD,
        ALIKE,
      ],
      ['49 headers', many(48), LARGE_HEAD, ALIKE],
      ['100 headers', many(99)],
      ['101 headers', many(100)],
      ['250 headers', many(249)],
      ['2,500 headers', many(2_499)],
      ['48 headers', many(47), SERVED],
      ['12 KiB of headers', get(`X-A: ${kib(12)}\r\n`), SERVED],
      [
        '12 KiB of headers in pieces',
        ['GET /a HTTP/1.1\r\nHost: h\r\nX-A: ', kib(6), kib(6), '\r\n\r\n'],
        SERVED,
      ],
    ],
  },
  {
    name: 'names of headers',
    answer: REFUSED,
    uws: BARE_400,
    rows: [
      ...[...CONTROLS, ...'\t "(),/;<=>?@[\\]{}\x7f\x80\xe4\xff'].map(
        (char): Row => [`${hex(char)} within`, get(`X${char}A: b\r\n`)],
      ),
      ...[..."!#$%&'*+-.^_`|~1"].map(
        (char): Row => [`${char} within`, get(`X${char}A: b\r\n`), SERVED],
      ),
      ['a blank before the colon', get('X-A : b\r\n')],
      ['a tab before the colon', get('X-A\t: b\r\n')],
      ['none', get(': b\r\n'), REFUSED, TAKEN],
      ['only a colon', get(':\r\n'), REFUSED, TAKEN],
      ['no colon', get('X-A\r\n')],
      ['a blank before the first header', 'GET /a HTTP/1.1\r\n Host: h\r\n\r\n'],
      ['a blank before host', 'GET /a HTTP/1.1\r\nX: y\r\n Host: h\r\n\r\n'],
      ['a blank behind host', 'GET /a HTTP/1.1\r\nHost : h\r\n\r\n'],
      ['a blank behind content-length', post('Content-Length : 1', 'b')],
      ['a blank behind transfer-encoding', post('Transfer-Encoding : chunked', LAST)],
      ['a bare carriage return before one', get('\rX-A: b\r\n')],
      ['upper case', 'GET /a HTTP/1.1\r\nHOST: h\r\n\r\n', SERVED],
      ['1 KiB', get(`${'x'.repeat(1_024)}: b\r\n`), SERVED],
      ['__proto__', get('__proto__: b\r\nconstructor: c\r\n'), SERVED],
    ],
  },
  {
    name: 'values of headers',
    answer: REFUSED,
    uws: BARE_400,
    rows: [
      ...CONTROLS.map((char): Row => [`${hex(char)} within`, get(`X-A: b${char}c\r\n`)]),
      ['0x7f within', get('X-A: b\x7fc\r\n'), REFUSED, TAKEN],
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
      ['folded transfer-encoding', post('Transfer-Encoding:\r\n chunked', LAST)],
      ['a header behind a fold', get('X-A: b\r\n X-B: c\r\n')],
      ['ended by a bare line feed', get('X-A: b\n')],
      ['ended by a bare carriage return', get('X-A: b\rX-B: c\r\n'), REFUSED, WAITS],
      ['ended by two carriage returns', get('X-A: b\r\r\n'), REFUSED, WAITS],
      ['a bare line feed within', get('X-A: b\nX-B: c\r\n')],
      ['the last empty line a bare line feed', 'GET /a HTTP/1.1\r\nHost: h\r\n\n'],
      ['all lines ended by line feeds', 'GET /a HTTP/1.1\nHost: h\n\n', REFUSED, BARE_505],
      ['NUL in the key', get('X-Api-Key: a\0b\r\n')],
      ['NUL in host', 'GET /a HTTP/1.1\r\nHost: h\0\r\n\r\n'],
    ],
  },
  {
    name: 'hosts',
    answer: REFUSED,
    rows: [
      ['none', 'GET /a HTTP/1.1\r\n\r\n', REFUSED, BARE_400],
      ['none, other headers', 'GET /a HTTP/1.1\r\nX-A: b\r\n\r\n', REFUSED, BARE_400],
      ['twice the same', get('Host: h\r\n'), REFUSED, BARE_400],
      ['twice, two hosts', get('Host: i\r\n'), REFUSED, BARE_400],
      ['twice, in two cases', get('HOST: h\r\n'), REFUSED, BARE_400],
      ['twice, the second empty', get('Host:\r\n'), REFUSED, BARE_400],
      ...words('h:80 127.0.0.1 127.0.0.1:8080 [::1] [::1]:80 a.b.c H h. xn--a :80 a_b').map(
        (host): Row => [host, `GET /a HTTP/1.1\r\nHost: ${host}\r\n\r\n`, SERVED],
      ),
      ...['h i', 'h, i', ...words('h/a http://h a@h h# h? h\\i h:80:80 h:x [::1 <h>')].map(
        (host): Row => [host, `GET /a HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
      ),
      ['\xe4', 'GET /a HTTP/1.1\r\nHost: \xe4\r\n\r\n', REFUSED, ['ends', SERVED]],
      ['empty', 'GET /a HTTP/1.1\r\nHost:\r\n\r\n', SERVED],
      ['4 KiB', `GET /a HTTP/1.1\r\nHost: ${'h'.repeat(4_096)}\r\n\r\n`, SERVED],
    ],
  },
  {
    name: 'lengths of bodies',
    answer: REFUSED,
    uws: BARE_400,
    rows: [
      ['1', bodied('1', 'b'), posted('b')],
      ['9 in pieces', IN_PIECES, posted('abcdefghi')],
      ['0', bodied('0'), '200 POST /a, open'],
      ['00', bodied('00'), '200 POST /a, open'],
      ['01', bodied('01', 'b'), posted('b')],
      ['blanks around it', bodied(' 1 ', 'b'), posted('b')],
      ['of a GET', `${get(ONE_BYTE)}b`, '200 GET /a "b", open'],
      ['of a DELETE', `${headed('DELETE /a HTTP/1.1', ONE_BYTE)}b`, '200 DELETE /a "b", open'],
      ['of a HEAD', `${headed('HEAD /a HTTP/1.1', ONE_BYTE)}b`, '200 HEAD, open'],
      ...[
        ...words('-1 +1 -0 0x1 1.0 1e0 1,1 1;a 1a a "1" 18446744073709551617 4294967297a'),
        ...['1, 1', '1 1', '\x001', '9'.repeat(30)],
      ].map((length): Row => [JSON.stringify(length), bodied(`${length}`, 'b')]),
      ...['', '9'.repeat(16), '\xb2'].map(
        (length): Row => [JSON.stringify(length), bodied(`${length}`, 'b'), REFUSED, ALIKE],
      ),
      ['twice the same', bodied('1\r\nContent-Length: 1', 'b'), REFUSED, ALIKE],
      ['twice, 1 and 2', TWO_LENGTHS, REFUSED, ALIKE],
      ['twice, 0 and 5', bodied('0\r\nContent-Length: 5', 'GET /'), REFUSED, ALIKE],
      ['twice, the second empty', bodied('1\r\nContent-Length:', 'b'), REFUSED, ALIKE],
      ['the limit', bodied('1000', bs(MAX_BODY_BYTES)), posted(bs(MAX_BODY_BYTES))],
      ['one beyond the limit', LONG_POST, LARGE_BODY],
      ['far beyond the limit', bodied('999999999'), LARGE_BODY],
      ['4 GiB and one', bodied('4294967297'), LARGE_BODY],
      ['15 digits', bodied(`${'9'.repeat(15)}`), LARGE_BODY],
    ],
  },
  {
    name: 'encodings of bodies',
    answer: '415 ENG_UNSUPPORTED_ENCODING, closed',
    rows: [
      ...['gzip', 'GZIP', 'br', 'deflate', 'zstd', 'gzip, gzip', 'identity, gzip', 'x'].map(
        (encoding): Row => [encoding, packed(encoding)],
      ),
      ['gzip of no body', get('Content-Encoding: gzip\r\n'), SERVED],
      ['identity', packed('identity'), posted('b')],
      ['none', post('Content-Encoding:\r\nContent-Length: 1', 'b'), posted('b')],
      ['twice', packed('gzip\r\nContent-Encoding: br'), REFUSED],
    ],
  },
  {
    name: 'encodings of transfer',
    answer: REFUSED,
    uws: BARE_400,
    rows: [
      ['chunked', chunked(ONE_CHUNK), posted('b'), CHUNKED],
      ['Chunked', encoded('Chunked', ONE_CHUNK), posted('b'), CHUNKED],
      ['CHUNKED', post('TRANSFER-ENCODING: CHUNKED', ONE_CHUNK), posted('b'), CHUNKED],
      ['blanks around it', encoded(' chunked ', ONE_CHUNK), posted('b'), CHUNKED],
      ['of a GET', get(CODED) + ONE_CHUNK, '200 GET /a "b", open', CHUNKED],
      ...['ch\x00unked', '\x0bchunked', 'chunked\x0b'].map(
        (encoding): Row => [JSON.stringify(encoding), encoded(encoding, LAST)],
      ),
      ['"\xffchunked"', encoded('\xffchunked', LAST), REFUSED, LOST_BYTES],
      ...[
        ...['', 'identity', 'gzip', 'xchunked', 'chunkedx', 'chunked;q=1', 'chunked,', ', chunked'],
        ...['chunked, chunked', 'chunked, identity', 'identity, chunked', 'gzip, chunked'],
        ...['chunked gzip', '"chunked"', "'chunked'", 'chun\tked', 'cow'],
      ].map((encoding): Row => [JSON.stringify(encoding), encoded(encoding, LAST), REFUSED, ALIKE]),
      ['twice chunked', encoded('chunked\r\nTransfer-Encoding: chunked', LAST), REFUSED, ALIKE],
      ['identity, too', encoded('identity\r\nTransfer-Encoding: chunked', LAST), REFUSED, ALIKE],
      ['chunked, then none', encoded('chunked\r\nTransfer-Encoding:', LAST), REFUSED, ALIKE],
      ['a length before it', both('6', '0\r\n\r\nG')],
      ['a length behind it', encoded('chunked\r\nContent-Length: 6', '0\r\n\r\nG')],
      ['a length of 0 before it', both('0', LAST)],
      ['a length beside identity', bodied('1\r\nTransfer-Encoding: identity', 'b')],
      ['a length beside gzip', bodied('1\r\nTransfer-Encoding: gzip', 'b')],
      [
        'a request within, by the length',
        post(
          'Content-Length: 4\r\nTransfer-Encoding: chunked',
          `1c\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n\r\n0\r\n\r\n`,
        ),
      ],
      ['a request within, by the chunks', both('35', `0\r\n\r\n${NEXT}`)],
    ],
  },
  {
    name: 'chunks',
    answer: REFUSED,
    uws: BARE_400,
    rows: [
      ['none but the last', chunked(LAST), '200 POST /a, open', CHUNKED],
      ['two', chunks('1\r\nb\r\n2\r\ncd\r\n'), posted('bcd'), CHUNKED],
      ['upper case', chunks(`A\r\n${bs(10)}\r\n`), posted(bs(10)), CHUNKED],
      ['zeros before the size', chunks('0001\r\nb\r\n'), posted('b'), CHUNKED],
      ['many zeros as the last', chunks('1\r\nb\r\n000'), posted('b'), CHUNKED],
      ['line ends', chunks('4\r\n\r\n\r\n\r\n'), '200 POST /a "\\r\\n\\r\\n", open', CHUNKED],
      ['in pieces', [encoded('chunked', '1\r'), '\nb', '\r\n0\r\n', '\r\n'], posted('b'), CHUNKED],
      ['byte by byte', [encoded('chunked'), ...'2\r\nbc\r\n0\r\n\r\n'], posted('bc'), CHUNKED],
      ['one of the limit', chunks(`3e8\r\n${bs(1_000)}\r\n`), posted(bs(1_000)), CHUNKED],
      ['beyond the limit', chunks(`3e9\r\n${bs(1_001)}\r\n`), LARGE_BODY],
      ['many beyond the limit', chunks(`${'1\r\nb\r\n'.repeat(1_001)}`), LARGE_BODY],
      ...[...words('zz -1 +1 0x1 1h 1, 1.0 "1"'), 'f'.repeat(17)].map((size) => sized(size)),
      ...['1 1', '1 ', '1\t', '1\x00'].map((size) => sized(size, TAKEN_CHUNK)),
      ...[' 1', '\t1', '', '\x001', '\xb9'].map((size) => sized(size, BARE_505)),
      sized('g', ['chunks', '408, closed']),
      [
        'many zeros before the size',
        chunks(`${'1'.padStart(300, '0')}\r\nb\r\n`),
        posted('b'),
        CHUNKED,
      ],
      ['a size ended by a line feed', chunks('1\nb\r\n'), REFUSED, TAKEN_CHUNK],
      [
        'a size ended by a carriage return',
        chunks('1\rb\r\n'),
        REFUSED,
        ['chunks', '200 POST /a "0", closed'],
      ],
      ['data longer than its size', chunks('1\r\nbc\r\n'), REFUSED, TAKEN_CHUNK],
      ['data ended by a line feed', chunks('1\r\nb\n'), REFUSED, TAKEN_CHUNK],
      ['data ended by nothing', chunks('1\r\nb'), REFUSED, TAKEN_CHUNK],
      ['the last ended by line feeds', chunked('1\r\nb\r\n0\n\n'), REFUSED, TAKEN_CHUNK],
      ['a request in place of the last', chunked(`1\r\nb\r\n${NEXT}`)],
    ],
  },
  {
    name: 'extensions of chunks',
    answer: posted('b'),
    rows: [
      ...words('a a=b a=b;c=d').map((extension) => extended(extension, SLOW)),
      ...['a="b"', 'a="b;c"', 'a="\\"b"', 'a='.padEnd(200, 'b')].map((extension) =>
        extended(extension, BARE_EXTENSION),
      ),
      ['on the last', chunked('1\r\nb\r\n0;a=b\r\n\r\n'), posted('b'), SLOW],
      ['none behind the semicolon', chunks('1;\r\nb\r\n'), REFUSED, SLOW],
      ['a blank behind the semicolon', chunks('1; a\r\nb\r\n'), REFUSED, SLOW],
      [
        'a blank before the semicolon',
        chunks('1 ;a\r\nb\r\n'),
        REFUSED,
        ['extensions', POSTED_LAST],
      ],
      ['a line feed within', chunks('1;a\nb\r\n'), REFUSED, SLOW],
      ['a carriage return within', chunks('1;a\rb\r\nb\r\n'), REFUSED, SLOW],
      ['NUL within', chunks('1;a\0\r\nb\r\n'), REFUSED, SLOW],
      ['a request within', chunks(`1;a\nGET /b HTTP/1.1\nHost: h\n\n\r\nb\r\n`), REFUSED, SLOW],
      ['20 KiB', chunks(`1;${kib(20)}\r\nb\r\n`), REFUSED, BARE_EXTENSION],
    ],
  },
  {
    name: 'trailers',
    answer: posted('b'),
    uws: TRAILERS,
    rows: [
      ['one', trailed('X-A: b')],
      ['a key', trailed('X-Api-Key: k')],
      ['a tenant', trailed('X-Tenant-Id: t')],
      ['a length', trailed('Content-Length: 5'), REFUSED, TRAILERS],
      ['an encoding', trailed('Transfer-Encoding: chunked'), REFUSED, TRAILERS],
      ['a host', trailed('Host: i')],
      [
        'a request in place of one',
        chunked(`1\r\nb\r\n0\r\n${NEXT}`),
        REFUSED,
        ['trailers', 'closed'],
      ],
      ['no colon', trailed('X-A'), REFUSED, LOST_TRAILER],
      ['a blank before the colon', trailed('X-A : b'), REFUSED, TRAILERS],
      ['NUL in a value', trailed('X-A: \0'), REFUSED, TRAILERS],
      ['folded', trailed('X-A: b\r\n c'), REFUSED, TRAILERS],
      ['40 KiB', trailed(`X-A: ${kib(40)}`), LARGE_HEAD, TRAILERS],
    ],
  },
  {
    name: 'expectations',
    answer: SERVED,
    rows: [
      ['100-continue without a body', get(EXPECT), SERVED_LAST, ['continue', `100, ${SERVED}`]],
      ['100-continue before its body', [post(`${EXPECT}Content-Length: 1`), 'b'], CONTINUED],
      [
        '100-Continue',
        post('Expect: 100-Continue\r\nContent-Length: 1', 'b'),
        CONTINUED,
        ['continue', posted('b')],
      ],
      [
        '100-continue before chunks',
        [post(`${EXPECT}Transfer-Encoding: chunked`), ONE_CHUNK],
        CONTINUED,
        CHUNKED,
      ],
      [
        '100-continue, too large',
        post(`${EXPECT}Content-Length: 1001`),
        LARGE_BODY,
        ['continue', `100, ${LARGE_BODY}`],
      ],
      ['100-continue, refused', get(EXPECT + TWO_KEYS), REFUSED, ['continue', `100, ${REFUSED}`]],
      ['another one', get('Expect: tea\r\n')],
      ['another one with a body', post('Expect: 200-ok\r\nContent-Length: 1', 'b'), posted('b')],
      ['none', get('Expect:\r\n')],
    ],
  },
  {
    name: 'connections and upgrades',
    answer: SERVED,
    rows: [
      ['keep-alive', get(KEEP)],
      ['close', get(CLOSE), SERVED_LAST],
      ['Close', get('Connection: Close\r\n'), SERVED_LAST],
      ['close among others', get('Connection: x, close\r\n'), SERVED_LAST, OPEN_ALL_THE_SAME],
      ['of a HEAD', headed('HEAD /a HTTP/1.1', CLOSE), '200 HEAD, closed'],
      ['names host', get('Connection: host\r\n')],
      [
        'a web socket',
        get(
          'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n',
        ),
      ],
      [
        'HTTP/2',
        get(
          'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n',
        ),
      ],
      ['an upgrade alone', get('Upgrade: websocket\r\n')],
      [
        'an upgrade with a request behind it',
        get('Connection: Upgrade\r\nUpgrade: x\r\n') + NEXT,
        SERVED,
        ['upgrade', TWICE_SERVED],
      ],
      ['proxy-connection', get('Proxy-Connection: keep-alive\r\n')],
    ],
  },
  {
    name: 'tenants',
    answer: servedOf('t'),
    rows: [
      ['a word', ofTenant('t')],
      ['blanks around it', ofTenant('  t \t')],
      ['none', get('X-Tenant-Id:\r\n'), servedOf(''), ['ends', REFUSED]],
      ['a blank within', ofTenant('t u'), servedOf('t u')],
      ['UTF-8 within', ofTenant('gr\xc3\xbcn'), servedOf('grün')],
      ['UTF-8 at the end', ofTenant('caf\xc3\xa9'), servedOf('café'), ['ends', servedOf('caf')]],
      ['UTF-8 at the beginning', ofTenant('\xc3\xa9t'), servedOf('ét'), ['ends', servedOf('t')]],
      ['nothing but UTF-8', ofTenant('\xc3\xa9'), servedOf('é'), ['ends', REFUSED]],
      ['no UTF-8', ofTenant('a\xffb'), servedOf('a�b')],
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
      ...words(
        'Accept Origin Cookie X-Request-Id Content-Type Traceparent X-Forwarded-For User-Agent',
      ).map((name): Row => [name, get(`${name}: a\r\n${name}: b\r\n`), SERVED]),
    ],
  },
  {
    name: 'requests behind requests',
    answer: TWICE_SERVED,
    rows: [
      ['two', get() + NEXT],
      [
        'three with bodies',
        bodied('1', 'b') + chunks('1\r\nc\r\n') + get(),
        '200 POST /a "b", 200 POST /a "c", 200 GET /a, open',
        ['pipelined', 'closed, unanswered POST /a "b"'],
      ],
      ['an empty line between', `${get()}\r\n${NEXT}`, TWICE_SERVED, WAITS_AFTER],
      ['one behind HEAD', first('HEAD /a HTTP/1.1') + NEXT, '200 HEAD, 200 GET /b, open'],
      ['one in pieces', [`${get()}GET /b HT`, 'TP/1.1\r\nHost: h\r\n\r\n']],
      ['twenty', get().repeat(20), `${'200 GET /a, '.repeat(20)}open`],
      ['one behind close', get(CLOSE) + NEXT, SERVED_LAST, ['close', TWICE_SERVED]],
      ['one behind a refusal', get(TWO_KEYS) + NEXT, REFUSED, BEHIND],
      ['one behind a refused target', get('', '/\xe4') + NEXT, REFUSED, BEHIND],
      ['one behind a malformed one', get('X A: b\r\n') + NEXT, REFUSED, BARE_400],
      ['one behind a head too large', many(60) + NEXT, LARGE_HEAD, BEHIND],
      ['one behind a body too large', LONG_POST + NEXT, LARGE_BODY, BEHIND],
      ['one behind an ambiguous length', TWO_LENGTHS + NEXT, REFUSED, BEHIND],
      ['one behind length and chunks', both('5', LAST) + NEXT, REFUSED, BARE_400],
      ['one behind a bad chunk', chunked('z\r\n') + NEXT, REFUSED, BARE_400],
      ['a body longer than its length', bodied('1', 'bGET') + NEXT, `200 POST /a "b", ${REFUSED}`],
      ['a body without a length', post('X-A: b', 'b=c') + NEXT, `200 POST /a, ${REFUSED}`],
      [
        'a refused one behind a good one',
        get() + get(TWO_KEYS, '/b') + get('', '/c'),
        ONE_AND_REFUSED,
        ['lost', 'closed, unanswered GET /a'],
      ],
      [
        'a malformed one behind a good one',
        get() + get('X A: b\r\n', '/b') + get('', '/c'),
        ONE_AND_REFUSED,
        ['lost', '400 bare, closed, unanswered GET /a'],
      ],
      ['words behind a good one', `${get()}hello\r\n\r\n`, ONE_AND_REFUSED, WAITS_AFTER],
      ['one too large behind a good one', get() + LONG_POST, `200 GET /a, ${LARGE_BODY}`],
      ['a good one behind one in work', GET_LATER + get(), BOTH_SERVED, PIPELINED],
      [
        'a good one behind one in work, in a packet of its own',
        [GET_LATER, get()],
        BOTH_SERVED,
        PIPELINED,
      ],
      ['a refused one behind one in work', GET_LATER + get(TWO_KEYS), LATER_REFUSED, PIPELINED],
      [
        'a malformed one behind one in work',
        GET_LATER + get('X A: b\r\n'),
        LATER_REFUSED,
        ['pipelined', '400 bare, closed, unanswered GET /later'],
      ],
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
      ['a part of the body', bodied('5', 'b')],
      ['no body', bodied('5')],
      ['a part of a chunk', chunked('5\r\nb')],
      ['all but the last chunk', chunked('1\r\nb\r\n')],
      ['all but the end of the trailers', chunked('1\r\nb\r\n0\r\n'), 'closed', LOST_TRAILER],
      ['a request', get(), SERVED_LAST],
      ['two requests', get() + NEXT, '200 GET /a, 200 GET /b, closed'],
      ['a request and a part of another one', `${get()}GET /b`, SERVED_LAST],
    ],
  },
];

/** @throws Error when two rows have one name */
function rowsOf(group: Group): RawRequest[] {
  if (new Set(group.rows.map(([name]) => name)).size < group.rows.length) {
    throw new Error(`${group.name}: two rows of one name`);
  }
  return group.rows.map(([name, sent, answer = group.answer, uws]) => {
    const other = uws ?? (answer === group.answer ? group.uws : undefined);
    return {
      group: group.name,
      name,
      sent: typeof sent === 'string' ? [sent] : sent,
      isEnded: group.isEnded ?? false,
      answer,
      uws:
        other === undefined || other === ALIKE
          ? undefined
          : { why: other[0], answer: other[1] ?? answer.replace(/open$/, 'closed') },
    };
  });
}

export const RAW_REQUESTS: readonly RawRequest[] = GROUPS.flatMap(rowsOf);
