/** The id under which a request appears in replies, logs and spans. */

const REQUEST_ID_CHARS_MAX = 128;
const CLEAN = /^[A-Za-z0-9_-]{1,128}$/;
const UNWANTED = /[^A-Za-z0-9_-]/g;

/**
 * The caller's id without the characters outside `[A-Za-z0-9_-]`, cut at 128 characters; what
 * `newRequestId` gives when nothing is left of it, or none was sent.
 */
export function requestIdFrom(sent: string | undefined, newRequestId: () => string): string {
  if (sent === undefined) return newRequestId();
  if (CLEAN.test(sent)) return sent;
  const kept = sent.replace(UNWANTED, '').slice(0, REQUEST_ID_CHARS_MAX);
  return kept === '' ? newRequestId() : kept;
}
