/**
 * The header `traceparent` of W3C Trace Context: which trace a caller is in, and by which span. What
 * is kept and handed on has the form of version 00. Pure.
 */

export interface TraceContext {
  /** 32 digits. */
  readonly traceId: string;
  /** 16 digits: the caller's span, which is the parent of what is done for it. */
  readonly spanId: string;
  /** Two digits; the lowest bit says that the trace is recorded. */
  readonly flags: string;
}

const HEADER = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const LENGTH = 55;
const ZEROS = /^0+$/;

/**
 * A later version may have more fields at its end, and flags that nobody knows yet: of such a header
 * counts what version 00 has. Blanks around a value do not belong to it.
 *
 * @returns undefined for a malformed header, which a server ignores as if it were not there
 */
export function parseTraceparent(header: string): TraceContext | undefined {
  const match = HEADER.exec(header.trim());
  if (match === null) return undefined;
  const [, version = '', traceId = '', spanId = '', flags = '', rest] = match;
  if (version === 'ff' || ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  if (version === '00') return rest === undefined ? { traceId, spanId, flags } : undefined;
  return { traceId, spanId, flags: isSampled(flags) ? '01' : '00' };
}

export function formatTraceparent({ traceId, spanId, flags }: TraceContext): string {
  return `00-${traceId}-${spanId}-${flags}`;
}

/** The header as it is kept and handed on; undefined for an absent or malformed one. */
export function keptTraceparent(header: string | undefined): string | undefined {
  if (header === undefined || header.length < LENGTH) return undefined;
  const context = parseTraceparent(header);
  return context && formatTraceparent(context);
}

function isSampled(flags: string): boolean {
  return (Number.parseInt(flags, 16) & 1) === 1;
}
