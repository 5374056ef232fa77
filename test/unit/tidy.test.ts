/**
 * The rules of the house that neither the compiler nor Biome knows, as tests over the source files. What they look at
 * is the text, cut into code, comments and strings by the compiler's scanner, so that a word in a comment is
 * not taken for code. A failure lists every place that breaks the rule, as `file:line`.
 *
 * Cost: 3 s, since it scans every source file.
 */

import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { STORE } from '../../actors/shard/store.js';
import { ROOMS, roomOf } from '../../scripts/reference/rooms.js';
import { filesIn, read, type Source, scan, sourcesIn } from '../../scripts/reference/sources.js';
import { ERROR_STATUS } from '../../src/base/errors.js';
import { LIMITS } from '../../src/base/limits.js';
import { lines } from '../helpers/columns.js';
import { MUTATION_KINDS, STATEMENTS } from '../helpers/store.js';

// ---------------------------------------------------------------- the files

/** What users install beside the server, or as a part of it. */
const CLIENTS = ['client/src', 'cli'];
const PRODUCT: readonly Source[] = ['src', 'actors', 'schema', ...CLIENTS].flatMap(sourcesIn);
const TESTS: readonly Source[] = sourcesIn('test');
const OTHERS: readonly Source[] = [
  ...['bench', 'examples', 'scripts/dashboard', 'scripts/reference', 'scripts/trials'],
].flatMap(sourcesIn);
const EVERYTHING: readonly Source[] = [...PRODUCT, ...TESTS, ...OTHERS];
const MIGRATIONS = filesIn('src/db/migrations', '.sql');
/** The dashboard, whose markup the scanner does not read. */
const UI: readonly Pick<Source, 'name' | 'text'>[] = ['.ts', '.tsx', '.css']
  .flatMap((extension) => filesIn('ui', extension))
  .map((name) => ({ name, text: read(name) }));

/** What turns schemas into checks and their errors into words. */
const COMPILES_SCHEMAS: ReadonlySet<string> = new Set([
  ...['schema/keywords.ts', 'schema/messages.ts', 'schema/params-check.ts'],
  ...['schema/user-schema.ts', 'schema/validators.ts'],
]);

/** Of the ground floor: the machine's clock, its log, its files and its threads. */
const IMPURE_GROUND =
  /^src\/base\/(?:background-job|quota\/(?:fair-slots|last-used)|log|log-output|log-text|manual-clock|offload|offload-pool|package-files|real-clock|serial)\.ts$/;

const isPure = ({ name }: Source) =>
  name.startsWith('src/core/') ||
  /^actors\/\w+\/core\//.test(name) ||
  (name.startsWith('src/base/') && !IMPURE_GROUND.test(name)) ||
  /^src\/db\/(?:batch|lines|mutation|statements|store|table|trouble|units)\.ts$/.test(name) ||
  /^actors\/\w+\/(?:\w+-)?tables\.ts$/.test(name) ||
  name === 'actors/runtime/protocol.ts' ||
  (name.startsWith('schema/') && !COMPILES_SCHEMAS.has(name));

const PURE: readonly Source[] = PRODUCT.filter(isPure);

// ---------------------------------------------------------------- findings

const place = ({ name, text }: Source, offset: number): string =>
  `${name}:${text.slice(0, offset).split('\n').length}`;

/** Every match of `pattern`, which must be global, in one view of a source, but on allowed lines. */
function matches(
  source: Source,
  view: 'code' | 'comments' | 'strings',
  pattern: RegExp,
  allowed?: RegExp,
): string[] {
  return [...source[view].matchAll(pattern)]
    .filter(({ index }) => allowed === undefined || !allowed.test(lineAt(source.text, index)))
    .map((match) => `${place(source, match.index)}  ${match[0].trim()}`);
}

function lineAt(text: string, offset: number): string {
  const end = text.indexOf('\n', offset);
  return text.slice(text.lastIndexOf('\n', offset) + 1, end < 0 ? text.length : end);
}

function nothing(findings: readonly string[]): void {
  assert.deepEqual(findings, []);
}

interface Import {
  readonly from: string;
  readonly names: string;
  readonly isType: boolean;
  /** A call: the module is loaded when it runs. */
  readonly isDynamic: boolean;
  readonly place: string;
}

const IMPORT = /\b(import|export)\b\s*(type\b)?([^'"();=]*?)(\bfrom\b|\()?\s*(['"])/g;

/** Static and dynamic imports, and exports of another module's names. */
function importsOf(source: Source): Import[] {
  const found: Import[] = [];
  for (const match of source.code.matchAll(IMPORT)) {
    const [whole, keyword, type, names = '', link, quote] = match;
    if (link === undefined && (keyword === 'export' || names.trim() !== '')) continue;
    const from = match.index + whole.length;
    found.push({
      from: source.text.slice(from, source.text.indexOf(quote!, from)),
      names,
      isType: type !== undefined,
      isDynamic: link === '(',
      place: place(source, match.index),
    });
  }
  return found;
}

/** @param isFound is given the file that is named, too, if it is one of these */
function importsIn(sources: readonly Source[], isFound: (one: Import, file: string) => boolean) {
  return sources.flatMap((source) =>
    importsOf(source)
      .filter((one) => isFound(one, resolveImport(source, one.from)))
      .map(({ from, names, place: at }) => `${at}  ${names.trim()} from ${from}`),
  );
}

// ---------------------------------------------------------------- purity

const PURE_PACKAGES: ReadonlySet<string> = new Set(
  '@sinclair/typebox luxon cron-parser tinyqueue'.split(' '),
);
/** What gives the same for the same input: hashes, and ciphers and signatures under given keys. */
const PURE_CRYPTO: ReadonlySet<string> = new Set([
  ...['createHash', 'hash', 'createHmac', 'createCipheriv', 'createDecipheriv', 'createPrivateKey'],
  ...['createPublicKey', 'hkdfSync', 'KeyObject', 'sign', 'verify', 'timingSafeEqual'],
]);

test('pure modules import nothing but assertions, cryptography and four packages', () => {
  const isWrong = ({ from, names }: Import) => !from.startsWith('.') && !isPureImport(from, names);
  nothing(importsIn(PURE, isWrong));
});

function isPureImport(from: string, names: string): boolean {
  if (from === 'node:assert' || from === 'node:assert/strict') return true;
  if (from !== 'node:crypto') return PURE_PACKAGES.has(from);
  const words = names.match(/\b(?!type\b)\w+/g) ?? [];
  return words.length > 0 && words.every((word) => PURE_CRYPTO.has(word));
}

test('pure modules take values from pure modules only', () => {
  const pure = new Set(PURE.map(({ name }) => name));
  const isValue = ({ from, isType }: Import) => from.startsWith('.') && !isType;
  nothing(importsIn(PURE, (one, file) => isValue(one) && !pure.has(file)));
});

const resolveImport = ({ name }: Source, from: string): string =>
  path.posix.join(path.posix.dirname(name), from.replace(/\.js$/, '.ts'));

// ---------------------------------------------------------------- order

type Graph = ReadonlyMap<string, ReadonlySet<string>>;

/** What imports what, by the names that `nameOf` gives the files. */
function graphOf(
  sources: readonly Source[],
  nameOf: (file: string) => string,
  of: 'values' | 'types too',
): Graph {
  const graph = new Map(sources.map(({ name }) => [nameOf(name), new Set<string>()]));
  for (const source of sources) {
    const name = nameOf(source.name);
    for (const { from, isType } of importsOf(source)) {
      if (isType && of === 'values') continue;
      const other = nameOf(resolveImport(source, from));
      if (from.startsWith('.') && other !== name && graph.has(other)) graph.get(name)?.add(other);
    }
  }
  return graph;
}

/** The names that are on a circle, or between two of them. */
function circlesIn(graph: Graph): string[] {
  const left = new Map([...graph].map(([name, others]) => [name, new Set(others)]));
  for (let removed = true; removed; ) {
    removed = false;
    const imported = new Set([...left.values()].flatMap((others) => [...others]));
    for (const [name, others] of left) {
      if (others.size > 0 && imported.has(name)) continue;
      left.delete(name);
      for (const rest of left.values()) rest.delete(name);
      removed = true;
    }
  }
  return [...left.keys()].sort();
}

/** What the server is made of. */
const HOUSE = PRODUCT.filter(({ name }) => /^(?:src|actors|schema)\//.test(name));

test('rooms import what the table of rooms says, types included, and nothing that stands behind them', () => {
  const imported = graphOf(HOUSE, roomOf, 'types too');
  const namesOf = (rooms: readonly string[]) => [...rooms].sort().join(' ');
  assert.deepEqual(
    new Map(Array.from(imported, ([name, rooms]) => [name, namesOf([...rooms])])),
    new Map(ROOMS.map(({ name, imports }) => [name, namesOf(imports)])),
  );
  const before = new Set<string>();
  for (const { name, imports } of ROOMS) {
    nothing(imports.filter((other) => !before.has(other)).map((other) => `${name}  ${other}`));
    before.add(name);
  }
});

test('a server without a cluster loads none of the room of cells', () => {
  const outside = HOUSE.filter(({ name }) => roomOf(name) !== 'src/cluster');
  const isLoaded = ({ isType, isDynamic }: Import, file: string) =>
    roomOf(file) === 'src/cluster' && !isType && !isDynamic;
  nothing(importsIn(outside, isLoaded));
  const isNamed = (_: Import, file: string) => roomOf(file) === 'src/cluster';
  const places = importsIn(outside, isNamed).map((found) => found.slice(0, found.indexOf(':')));
  assert.deepEqual([...new Set(places)], ['src/server/placement.ts']);
});

test('no circle of imports leads through files, but for types that name one another', () => {
  nothing(circlesIn(graphOf(PRODUCT, (file) => file, 'values')));
});

test('circles are recognised', () => {
  const imports = Object.entries({ a: ['b'], b: ['c'], c: ['b', 'd'], d: [] });
  const graph = new Map(imports.map(([name, others]) => [name, new Set<string>(others)]));
  assert.deepEqual(circlesIn(graph), ['b', 'c']);
});

// ---------------------------------------------------------------- impure words

/** A line that only declares a method, as in an interface of what is handed in. */
const SIGNATURE = /^\s*[\w$]+\(.*\):\s*[^;{]+;$/;

const IMPURE = new RegExp(
  [
    String.raw`\bDate\.now\b`,
    String.raw`\bnew\s+Date\s*(?:\(\s*\)|(?![\s(]))`,
    String.raw`\bMath\.random\b`,
    String.raw`(?<![.\w$])(?:process|performance|crypto|globalThis|console)\s*[.[]`,
    String.raw`(?<![.\w$])(?:set|clear)(?:Timeout|Interval|Immediate)\s*\(`,
    String.raw`(?<![.\w$])(?:queueMicrotask|fetch)\s*\(`,
    String.raw`\bDateTime\.(?:now|local|utc)\s*\(\s*\)`,
    String.raw`\bSettings\.\w+`,
    String.raw`\bawait\b`,
    String.raw`\basync\b(?!:)`,
  ].join('|'),
  'g',
);

test('pure modules read no clock, draw no randomness, wait for nothing and log nothing', () => {
  nothing(PURE.flatMap((source) => matches(source, 'code', IMPURE, SIGNATURE)));
});

test('what makes a module impure is recognised', () => {
  const impure = [
    ...['Date.now()', 'new Date()', 'new Date;', 'Math.random()', 'process.env'],
    ...['setTimeout(f, 1)', 'console.log(1)', 'performance.now()', 'crypto.randomUUID()'],
    ...['DateTime.now()', 'async () => await f()'],
  ];
  const pure = ['new Date(ms)', 'x.process.y', 'env.random()', 'clock.setTimeout(f, 1)'];
  const isImpure = (text: string) => matches(scan('x.ts', text), 'code', IMPURE).length > 0;
  const wrong = impure.filter((text) => !isImpure(text));
  assert.deepEqual(wrong, []);
  assert.deepEqual([...pure, 'Date.UTC(1)'].filter(isImpure), []);
});

// ---------------------------------------------------------------- modules

const BEGINNING = { ts: /^(?:#!.*\n)?\/\*\*\s/, css: /^\/\*\s/ };

test('every module begins with a comment that says what it is for', () => {
  nothing([
    ...[...EVERYTHING, ...UI]
      .filter(({ text, name }) => !BEGINNING[name.endsWith('.css') ? 'css' : 'ts'].test(text))
      .map(({ name }) => name),
    ...MIGRATIONS.filter((name) => !read(name).startsWith('-- ')),
  ]);
});

/** What is written by a program has the length of what it is made from. */
const isGenerated = (name: string) => name.startsWith('client/src/generated/');

/** What holds more than this holds two things. */
const LINES_MAX = 600;

test(`no file of the product has more than ${LINES_MAX} lines`, () => {
  nothing(
    [...PRODUCT, ...UI]
      .filter(({ name }) => !isGenerated(name))
      .map(({ name, text }) => ({ name, lines: text.split('\n').length - 1 }))
      .filter(({ lines }) => lines > LINES_MAX)
      .map(({ name, lines }) => `${name}  ${lines} lines`),
  );
});

// ---------------------------------------------------------------- left-overs

test('no work is left as a note in a comment', () => {
  const note = /\b(?:TODO|FIXME|XXX|HACK)\b/g;
  nothing([
    ...EVERYTHING.flatMap((source) => matches(source, 'comments', note)),
    ...MIGRATIONS.filter((name) => read(name).search(note) >= 0),
  ]);
});

/** A test that finds at run time that it cannot run here, and says why. */
const SKIPS_HERE = /^\s*if \(.+\) return t\.skip\('/;

/** An option before the function of a test: elsewhere it is the field of a validation. */
const SKIP_OPTION = /\{[^{}]*\bskip\s*:[^{}]*\}\s*,\s*(?:async\b|function\b|\(|\w+\s*=>)/g;

test('no test runs alone, and none is left out but where it cannot run', () => {
  const marked = /\b(?:test|it|describe|suite|t)\.(?:only|skip|todo)\b|\b(?:only|todo)\s*:/g;
  nothing(TESTS.flatMap((source) => matches(source, 'code', marked, SKIPS_HERE)));
  nothing(TESTS.flatMap((source) => matches(source, 'code', SKIP_OPTION)));
  const isLeftOut = (text: string) => matches(scan('x.ts', text), 'code', SKIP_OPTION).length > 0;
  for (const given of ["'why'", 'isOdd', 'true, timeout: 1']) {
    assert.ok(isLeftOut(`test('a', { skip: ${given} }, () => {})`), given);
    assert.ok(isLeftOut(`describe(name, {\n  skip: ${given},\n}, async () => {})`), given);
  }
  assert.ok(!isLeftOut("test('a', () => send('validate', { skip: true }))"));
});

// ---------------------------------------------------------------- who writes rows

/** The writer, the statements it runs, ownership and migrations; and what changes the directory of a cluster. */
const WRITES_ROWS =
  /^(?:actors\/(?:writer\/[\w.-]+|\w+\/(?:\w+-)?tables)|src\/db\/(?:statements|writer-session|migrate|lease(?:-\w+)?)|src\/cluster\/(?:directory|cell-moves|move)[\w-]*)\.ts$/;

test('only the writer, ownership, the migrations and the directory change rows', () => {
  const change =
    /\binsert\s+into\b|\bupdate\s+(?:only\s+)?\w+(?:\s+(?:as\s+)?\w+)?\s+set\b|\bdelete\s+from\b|\bfrom\s+stdin\b|\bmerge\s+into\b|\btruncate\s+table\b/gi;
  nothing(
    PRODUCT.filter(({ name }) => !WRITES_ROWS.test(name)).flatMap((source) =>
      matches(source, 'strings', change),
    ),
  );
});

test('every kind of mutation has a statement, under a name of its own that Postgres keeps whole', () => {
  nothing(MUTATION_KINDS.filter((kind) => (STATEMENTS[kind]?.text ?? '').trim() === ''));
  const names = STORE.statements.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  nothing(names.filter((name) => Buffer.byteLength(name) > 63));
});

// ---------------------------------------------------------------- limits and errors

test('every limit is used by the product', () => {
  nothing(
    Object.keys(LIMITS).filter((limit) => {
      const use = new RegExp(String.raw`\bLIMITS\.${limit}\b`);
      return !PRODUCT.some(({ code }) => use.test(code));
    }),
  );
});

test('every error code is answered by the product', () => {
  nothing(
    Object.keys(ERROR_STATUS).filter((code) => {
      const mention = new RegExp(String.raw`\b${code}\b`);
      // The catalogue names all codes; there only one that is put into an error counts.
      const making = new RegExp(String.raw`\b(?:EngineError|unavailable)\(\s*'${code}'`);
      return !PRODUCT.some(({ name, strings, text }) =>
        name === 'src/base/errors.ts' ? making.test(text) : mention.test(strings),
      );
    }),
  );
});

// ---------------------------------------------------------------- the scanner itself

test('the scanner tells code, comments, strings and regular expressions apart', () => {
  const text = [
    'const a = /["\'`]\\/[/]/.test(`x #{f({ b: "}" })} y`); // any',
    "const c = d / e / 'any'; /* console. */",
    'const g = `one #{`two #{"three"}`} four`;',
  ]
    .join('\n')
    .replaceAll('#{', '$' + '{');
  const source = scan('example.ts', text);
  const words = (view: string) => view.split(/\s+/).filter((word) => word !== '');
  assert.deepEqual(words(source.comments), ['//', 'any', '/*', 'console.', '*/']);
  assert.deepEqual(words(source.strings), ['x', '}', 'y', 'any', 'one', 'two', 'three', 'four']);
  assert.equal(source.code.split('\n')[1]?.trimEnd(), "const c = d / e / '   ';");
  assert.ok(!/any|console|three/.test(source.code));
});

test('imports are found in all their forms', () => {
  const text = [
    ...["import './a.js';", "import type { B } from './b.js';", "import c, { d } from 'c';"],
    ...["export { e } from './e.js';", "const f = await import('./f.js');"],
    ...["export const g = 'not-imported';"],
  ].join('\n');
  assert.deepEqual(lines(importsOf(scan('example.ts', text)), 'from', 'isType'), [
    ...['./a.js false', './b.js true', 'c false', './e.js false', './f.js false'],
  ]);
});
