/** Standard base64 (RFC 4648 §4), strictly: one text for each sequence of bytes. */

/** Undefined unless the text is the canonical encoding of the bytes. */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}

/** Requires a number of bytes; a text of another length is not decoded. */
export function decodeBase64Exactly(text: string, length: number): Buffer | undefined {
  if (text.length !== base64Length(length)) return undefined;
  const bytes = decodeBase64(text);
  return bytes?.length === length ? bytes : undefined;
}

export const base64Length = (bytes: number): number => Math.ceil(bytes / 3) * 4;
