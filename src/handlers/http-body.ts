/**
 * Reads the text of a response (docs/reference/handlers.md): decompresses and decodes it in pieces, within a bound. A
 * body that cannot be read does not fail the request: the caller gets the reason instead.
 */

import { pipeline, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import type { Dispatcher } from 'undici';

/** The limit for the body as received and after each decompression; a larger one is a permanent failure. */
export const RESPONSE_BYTES_MAX = 10 * 1024 * 1024;
/** Each decompressor allocates a window. */
const CODINGS_MAX = 4;

/** A part of the text, and the number of bytes up to its end. */
export interface TextPiece {
  readonly text: string;
  readonly bytes: number;
}

export class Unreadable extends Error {}

export class TooLarge extends Error {}

type Bytes = AsyncIterable<Buffer>;
type Decoder = InstanceType<typeof TextDecoder>;

/**
 * Closes the connection if not read to its end. Invalid bytes and NUL become U+FFFD.
 *
 * @param isExact invalid bytes make the body unreadable
 * @throws Unreadable, TooLarge
 */
export async function* textOf(
  { headers, body }: Pick<Dispatcher.ResponseData, 'headers' | 'body'>,
  isExact = false,
): AsyncGenerator<TextPiece> {
  // Without a listener, the error of a destroyed body would be uncaught.
  body.on('error', () => undefined);
  try {
    const [type, coding] = [asText(headers['content-type']), asText(headers['content-encoding'])];
    yield* readable(body, type, coding, isExact);
  } finally {
    body.destroy();
  }
}

async function* readable(
  body: Bytes,
  contentType: string,
  contentEncoding: string,
  isExact: boolean,
) {
  const charset = charsetOf(contentType);
  const codings = codingsOf(contentEncoding);
  const problem = problemOf(charset, codings);
  let source: Bytes = bounded(body);
  for (const coding of problem === undefined ? codings.reverse() : []) {
    source = bounded(unpacked(source, coding));
  }
  const text = new TextReader(charset, isExact);
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.byteLength;
    // An unreadable body is still read to its end, to detect a truncated one.
    if (problem === undefined) yield { text: storable(text.read(chunk)), bytes };
  }
  // An empty body is readable in every encoding.
  if (problem !== undefined && bytes > 0) throw new Unreadable(problem);
  yield { text: storable(text.end()), bytes };
}

/** Repeated headers form one list. */
function asText(header: string | string[] | undefined): string {
  return Array.isArray(header) ? header.join(', ') : (header ?? '');
}

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

/** Cuts a name from a header, which may have any length. */
function quote(name: string): string {
  return JSON.stringify(name.slice(0, 64));
}

/** By the names of RFC 9110; each gets the first byte of its input. */
const UNPACKERS: ReadonlyMap<string, (first: number) => Transform> = new Map<
  string,
  (first: number) => Transform
>([
  ['gzip', () => createGunzip()],
  ['x-gzip', () => createGunzip()],
  ['br', () => createBrotliDecompress()],
  // Half of all servers leave out the zlib frame (RFC 1950), which begins with its method.
  ['deflate', (first: number) => ((first & 0x8f) === 0x08 ? createInflate() : createInflateRaw())],
]);

/** Empty input stays empty, as in the response to a HEAD. */
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
  // The iteration below reports its error.
  pipeline(noted(), unpacker, () => undefined);
  try {
    yield* unpacker as Bytes;
  } catch {
    // The source may have failed first.
    if (broken !== undefined) throw broken.error;
    throw new Unreadable(`its bytes are not ${coding}`);
  }
}

/** Drops empty chunks, and limits the size. */
async function* bounded(source: Bytes): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.byteLength;
    // Leaving the loop destroys the source, and with it the connection.
    if (bytes > RESPONSE_BYTES_MAX) throw new TooLarge();
    if (chunk.byteLength > 0) yield chunk;
  }
}

/** A byte order mark takes precedence over the header. */
const MARKS: readonly (readonly [mark: readonly number[], charset: string])[] = [
  [[0xef, 0xbb, 0xbf], 'utf-8'],
  [[0xff, 0xfe], 'utf-16le'],
  [[0xfe, 0xff], 'utf-16be'],
];
const MARK_BYTES_MAX = 3;

/** Chooses the decoder by the first bytes, and removes a byte order mark. */
class TextReader {
  readonly #charset: string;
  readonly #isExact: boolean;
  #decoder: Decoder | undefined;
  #begin: Buffer = Buffer.alloc(0);

  constructor(charset: string, isExact: boolean) {
    this.#charset = charset;
    this.#isExact = isExact;
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
    // An unknown charset is possible only for an empty body.
    this.#decoder = decoderOf(marked?.[1] ?? this.#charset, this.#isExact) ?? new TextDecoder();
    return this.#decoder;
  }
}

const STREAM = { stream: true };
/** The characters from 0x80 on in which windows-1252 differs from Latin-1. */
const WINDOWS_1252 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

/** Some releases of Node decode windows-1252 as Latin-1. */
function decode(decoder: Decoder, bytes?: Buffer, options?: typeof STREAM): string {
  const text = decoded(decoder, bytes, options);
  if (decoder.encoding !== 'windows-1252') return text;
  return text.replace(/[\x80-\x9f]/g, (unit) => WINDOWS_1252[unit.charCodeAt(0) - 0x80]!);
}

function decoded(decoder: Decoder, bytes?: Buffer, options?: typeof STREAM): string {
  try {
    return decoder.decode(bytes, options);
  } catch {
    throw new Unreadable(`its bytes are not ${decoder.encoding}`);
  }
}

function decoderOf(charset: string, fatal = false): Decoder | undefined {
  try {
    return new TextDecoder(charset, { fatal });
  } catch {
    return undefined;
  }
}

const NUL = 0;
const REPLACEMENT = 0xfffd;

/** Replaces NUL by code unit: for 10 MiB of NUL this takes 50 ms, and string replacement two seconds. */
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
