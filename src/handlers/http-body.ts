/**
 * The text of an answer (docs/reference/handlers.md): what it was packed in undone and its characters
 * read by its charset, piece by piece, so that an answer of any size is bounded before it is kept.
 *
 * An answer that cannot be read is an answer all the same: whoever asks is told why there is no text.
 */

import { pipeline, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import type { Dispatcher } from 'undici';

/** A larger one is a permanent failure, as it came and as it is unpacked. */
export const RESPONSE_BYTES_MAX = 10 * 1024 * 1024;
/** Each keeps a window of memory, and nobody packs an answer more often. */
const CODINGS_MAX = 4;

/** A part of the text, and the bytes of the text up to its end. */
export interface TextPiece {
  readonly text: string;
  readonly bytes: number;
}

/** The answer has no text that could be read. */
export class Unreadable extends Error {}

/** The answer is over `RESPONSE_BYTES_MAX`. */
export class TooLarge extends Error {}

type Bytes = AsyncIterable<Buffer>;
type Decoder = InstanceType<typeof TextDecoder>;

/**
 * The connection is given up when the text is not read to its end. Bytes that no character has become U+FFFD, and so
 * does NUL, which Postgres cannot store; a decoder never yields a lone surrogate.
 *
 * @throws Unreadable, TooLarge, and what the connection ends with
 */
export async function* textOf({
  headers,
  body,
}: Pick<Dispatcher.ResponseData, 'headers' | 'body'>): AsyncGenerator<TextPiece> {
  // A body that is destroyed while it is read has an error that nobody else listens to.
  body.on('error', () => undefined);
  try {
    yield* readable(body, asText(headers['content-type']), asText(headers['content-encoding']));
  } finally {
    // What unpacks may wait for a piece that never comes.
    body.destroy();
  }
}

async function* readable(
  body: Bytes,
  contentType: string,
  contentEncoding: string,
): AsyncGenerator<TextPiece> {
  const charset = charsetOf(contentType);
  const codings = codingsOf(contentEncoding);
  const problem = problemOf(charset, codings);
  let source: Bytes = bounded(body);
  for (const coding of problem === undefined ? codings.reverse() : []) {
    source = bounded(unpacked(source, coding));
  }
  const text = new TextReader(charset);
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.byteLength;
    // Read to its end all the same: one that is cut off is no answer.
    if (problem === undefined) yield { text: storable(text.read(chunk)), bytes };
  }
  // No bytes are no text, whatever they would have been packed in.
  if (problem !== undefined && bytes > 0) throw new Unreadable(problem);
  yield { text: storable(text.end()), bytes };
}

/** What came several times is one list. */
function asText(header: string | string[] | undefined): string {
  return Array.isArray(header) ? header.join(', ') : (header ?? '');
}

/** As it is named; UTF-8 when nothing is said. */
function charsetOf(contentType: string): string {
  const [, quoted, plain] = /;\s*charset\s*=\s*(?:"([^"]*)"|([^\s;,"]+))/i.exec(contentType) ?? [];
  return (quoted ?? plain ?? '').trim() || 'utf-8';
}

/** In the order in which they were applied. */
function codingsOf(contentEncoding: string): string[] {
  const names = contentEncoding.split(',').map((name) => name.trim().toLowerCase());
  return names.filter((name) => name !== '' && name !== 'identity');
}

function problemOf(charset: string, codings: readonly string[]): string | undefined {
  const unknown = codings.find((coding) => !UNPACKERS.has(coding));
  if (unknown !== undefined) return `the content-encoding ${quote(unknown)} is unknown`;
  if (codings.length > CODINGS_MAX) return `it is packed more than ${CODINGS_MAX} times`;
  return decoderOf(charset) === undefined ? `the charset ${quote(charset)} is unknown` : undefined;
}

/** Of a header, which may have any length. */
function quote(name: string): string {
  return JSON.stringify(name.slice(0, 64));
}

/** By the names of RFC 9110, each given the first byte of what it is to undo. */
const UNPACKERS: ReadonlyMap<string, (first: number) => Transform> = new Map<
  string,
  (first: number) => Transform
>([
  ['gzip', () => createGunzip()],
  ['x-gzip', () => createGunzip()],
  ['br', () => createBrotliDecompress()],
  // Half of all servers leave out the frame of zlib (RFC 1950), which begins with its method.
  ['deflate', (first: number) => ((first & 0x8f) === 0x08 ? createInflate() : createInflateRaw())],
]);

/** Nothing stays nothing, as in the answer to a HEAD. */
async function* unpacked(source: Bytes, coding: string): AsyncGenerator<Buffer> {
  let broken: { readonly error: unknown } | undefined;
  const chunks = source[Symbol.asyncIterator]();
  const begin = await chunks.next();
  if (begin.done === true) return;
  const noted = async function* () {
    try {
      yield begin.value;
      yield* { [Symbol.asyncIterator]: () => chunks };
    } catch (error) {
      broken = { error };
      throw error;
    }
  };
  const unpacker = UNPACKERS.get(coding)!(begin.value[0]!);
  // Its error is that of the iteration below.
  pipeline(noted(), unpacker, () => undefined);
  try {
    yield* unpacker as Bytes;
  } catch {
    // What comes before it may have failed for a reason of its own.
    if (broken !== undefined) throw broken.error;
    throw new Unreadable(`its bytes are not ${coding}`);
  }
}

/** Without pieces of no bytes. */
async function* bounded(source: Bytes): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.byteLength;
    // Leaving the loop destroys the source, and with it the connection.
    if (bytes > RESPONSE_BYTES_MAX) throw new TooLarge();
    if (chunk.byteLength > 0) yield chunk;
  }
}

/** Byte order marks say more than a header does. */
const MARKS: readonly (readonly [mark: readonly number[], charset: string])[] = [
  [[0xef, 0xbb, 0xbf], 'utf-8'],
  [[0xff, 0xfe], 'utf-16le'],
  [[0xfe, 0xff], 'utf-16be'],
];
const MARK_BYTES_MAX = 3;

/** Decides on the decoder by the first bytes, and removes their mark. */
class TextReader {
  readonly #charset: string;
  #decoder: Decoder | undefined;
  #begin: Buffer = Buffer.alloc(0);

  constructor(charset: string) {
    this.#charset = charset;
  }

  read(chunk: Buffer): string {
    if (this.#decoder !== undefined) return decode(this.#decoder, chunk, STREAM);
    this.#begin = Buffer.concat([this.#begin, chunk]);
    return this.#begin.length < MARK_BYTES_MAX ? '' : decode(this.#decide(), this.#begin, STREAM);
  }

  end(): string {
    if (this.#decoder !== undefined) return decode(this.#decoder);
    return decode(this.#decide(), this.#begin);
  }

  #decide(): Decoder {
    const marked = MARKS.find(([mark]) => mark.every((byte, i) => this.#begin[i] === byte));
    // Where the charset is unknown there are no bytes.
    this.#decoder = decoderOf(marked?.[1] ?? this.#charset) ?? new TextDecoder();
    return this.#decoder;
  }
}

const STREAM = { stream: true };

/** The characters of windows-1252 from 0x80 on that Latin-1 does not have. */
const WINDOWS_1252 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

/** Some releases of Node take windows-1252 for Latin-1. */
function decode(decoder: Decoder, bytes?: Buffer, options?: typeof STREAM): string {
  const text = decoder.decode(bytes, options);
  if (decoder.encoding !== 'windows-1252') return text;
  return text.replace(/[\x80-\x9f]/g, (unit) => WINDOWS_1252[unit.charCodeAt(0) - 0x80]!);
}

/** Undefined: it is none that is known. */
function decoderOf(charset: string): Decoder | undefined {
  try {
    return new TextDecoder(charset);
  } catch {
    return undefined;
  }
}

const NUL = 0;
const REPLACEMENT = 0xfffd;

/** By code units: ten megabytes of NUL would hold the thread for two seconds as text, and do for some 50 ms so. */
function storable(text: string): string {
  if (!text.includes('\0')) return text;
  const units = new Uint16Array(text.length);
  const bytes = Buffer.from(units.buffer);
  bytes.write(text, 'utf16le');
  for (let at = units.indexOf(NUL); at < units.length; at += 1) {
    if (units[at] === NUL) units[at] = REPLACEMENT;
  }
  return bytes.toString('utf16le');
}
